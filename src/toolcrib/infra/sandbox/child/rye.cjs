// The global `rye` of Node scripts: call other tools and reach the client of the call over the channel to the host.
"use strict";

const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const QUESTIONS = { elicit: "elicitation/create", sample: "sampling/createMessage", roots: "roots/list" };

const waiting = new Map();
let channel;
let last = 0;
let rest = "";

class ToolError extends Error {
  constructor({ type = "INTERNAL", message = "the call failed", retryable = false, ...more } = {}) {
    super(message);
    Object.assign(this, more, { name: "ToolError", type, retryable: retryable === true });
  }
}

function open() {
  const net = require("node:net"); // only here: most scripts never reach the host
  const descriptor = Number(process.env.TOOLCRIB_CHANNEL);
  channel = new net.Socket({ fd: descriptor, readable: true, writable: true });
  channel.setEncoding("utf8");
  channel.on("data", take);
  channel.on("error", finish);
  channel.on("close", finish);
  channel.unref();
}

function take(text) {
  const lines = (rest + text).split("\n");
  rest = lines.pop();
  for (const line of lines) settle(JSON.parse(line));
}

function settle(answer) {
  if (answer.id === null) return finish(); // the host stopped reading
  const call = waiting.get(answer.id);
  if (call === undefined) return;
  waiting.delete(answer.id);
  if (waiting.size === 0) channel.unref();
  if (answer.ok === true) call.resolve(answer.value);
  else call.reject(new ToolError(answer.error));
}

function finish() {
  const calls = [...waiting.values()];
  waiting.clear();
  channel.unref();
  for (const call of calls) call.reject(new ToolError({ type: "CANCELLED", message: "the connection to the crib was closed" }));
}

const isConnected = () => process.env.TOOLCRIB_CHANNEL !== undefined;

async function execute(tool, args = {}) {
  if (!isConnected()) {
    throw new ToolError({
      type: "CAPABILITY_MISSING",
      message: `calling ${tool} requires rye.execute; list it in requires`,
    });
  }
  return settled({ tool, arguments: args });
}

async function ask(message) {
  if (!isConnected()) {
    const method = QUESTIONS[message.do];
    const name = method.split("/")[0];
    throw new ToolError({
      type: "CAPABILITY_MISSING",
      message: `the client of this call cannot answer ${method}; call the tool from a client with the capability '${name}'`,
      details: { clientCapability: name },
    });
  }
  return settled(message);
}

function settled(message) {
  if (channel === undefined) open();
  const id = ++last;
  const line = JSON.stringify({ id, ...message }) + "\n";
  return new Promise((resolve, reject) => {
    if (channel.destroyed) return reject(new ToolError({ type: "CANCELLED", message: "the connection to the crib was closed" }));
    waiting.set(id, { resolve, reject });
    channel.ref(); // the process stays as long as an answer is awaited
    channel.write(line);
  });
}

function tell(message) {
  if (!isConnected()) return; // there is no listener
  if (channel === undefined) open();
  const line = JSON.stringify(message) + "\n";
  if (channel.destroyed) return;
  channel.ref(); // and until what it says is written
  channel.write(line, () => {
    if (waiting.size === 0 && channel.writableLength === 0) channel.unref();
  });
}

// What a function yields; resolved when it is written, so that one that yields faster than the host reads waits.
function chunk(value) {
  if (!isConnected()) return undefined;
  if (channel === undefined) open();
  channel.ref();
  return new Promise((resolve) => channel.write(JSON.stringify({ do: "chunk", value }) + "\n", resolve));
}

const endChunks = async () => (isConnected() ? settled({ do: "end_chunks" }) : undefined);

function progress(figure, total = null, message = "") {
  tell({ do: "progress", progress: figure, total, message });
}

function log(level, data = null) {
  if (!LEVELS.includes(level)) {
    throw new ToolError({ type: "VALIDATION", message: `there is no level ${level}; use one of ${LEVELS.join(", ")}` });
  }
  tell({ do: "log", level, data });
}

const elicit = async (message, schema, { key = "" } = {}) => ask({ do: "elicit", message, schema, key });
const roots = async ({ key = "" } = {}) => ask({ do: "roots", key });

async function sample(messages, { maxTokens = 1000, key = "", ...more } = {}) {
  return ask({ do: "sample", messages, maxTokens, key, more });
}

globalThis.rye = Object.freeze({ execute, progress, log, elicit, sample, roots, ToolError });
module.exports = { chunk, endChunks };
