// The global `rye` of Node scripts: call other tools over the channel to the host.
"use strict";

const net = require("node:net");

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

async function execute(tool, args = {}) {
  if (process.env.TOOLCRIB_CHANNEL === undefined) {
    throw new ToolError({
      type: "CAPABILITY_MISSING",
      message: `calling ${tool} requires rye.execute; list it in requires`,
    });
  }
  if (channel === undefined) open();
  const id = ++last;
  const line = JSON.stringify({ id, tool, arguments: args }) + "\n";
  return new Promise((resolve, reject) => {
    if (channel.destroyed) return reject(new ToolError({ type: "CANCELLED", message: "the connection to the crib was closed" }));
    waiting.set(id, { resolve, reject });
    channel.ref(); // the process stays as long as an answer is awaited
    channel.write(line);
  });
}

globalThis.rye = Object.freeze({ execute, ToolError });
