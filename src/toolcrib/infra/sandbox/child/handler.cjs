// A worker for the handler of a tool folder: loads it once and answers its calls, one at a time, over the channel.
//
// The handler shares this process and may replace any global or prototype. What is needed to talk to the host is saved
// here before it is loaded, and lines are concatenated from strings, which no prototype can change.
"use strict";

const { AsyncLocalStorage } = require("node:async_hooks");
const { Socket } = require("node:net");
const { loadHandler } = require("./modules.cjs");

const MAX_VALUE_BYTES = 8_000_000;
const MAX_ITEMS = 100_000;
const MAX_PRINTED = 65_536;
const MAX_PRINTED_BYTES = 131_072;
const MAX_TEXT = 4_000;
const MAX_DETAILS_BYTES = 65_536;
const HALF = "a string with a lone surrogate";
const OLDEST = [20, 19];
const LEVELS = {
  debug: 0, info: 1, notice: 2, warning: 3, error: 4, critical: 5, alert: 6, emergency: 7,
};

const { parse, stringify } = JSON;
const { byteLength } = Buffer;
const makeBuffer = Buffer.from;
const { create: makeObject, hasOwn } = Object;
const makeString = String;
const NativePromise = Promise;
const NativeError = Error;
const NativeTypeError = TypeError;
const isArray = Array.isArray;
const { asyncIterator, iterator } = Symbol;
const unbound = Function.prototype.call.bind.bind(Function.prototype.call);
const indexOf = unbound(String.prototype.indexOf);
const startsWith = unbound(String.prototype.startsWith);
const slice = unbound(String.prototype.slice);
const isWellFormed = unbound(String.prototype.isWellFormed);
const toWellFormed = unbound(String.prototype.toWellFormed);
const within = unbound(AsyncLocalStorage.prototype.run);
const storeOf = unbound(AsyncLocalStorage.prototype.getStore);
const send = unbound(Socket.prototype.write);
const hangUp = unbound(Socket.prototype.end);
const exit = process.exit.bind(process);

const calls = new AsyncLocalStorage(); // the call that the running code belongs to, even after it ended
const asks = makeObject(null);
let lastAsk = 0;
let current; // the call that the host waits for
let isSpent = false; // after an uncaught error this process takes no further call
let execute;
let channel;
let rest = "";

function take(text) {
  let end = indexOf(text, "\n");
  while (end >= 0) {
    const line = rest + slice(text, 0, end);
    rest = "";
    text = slice(text, end + 1);
    hear(parse(line));
    end = indexOf(text, "\n");
  }
  rest += text;
}

function hear(message) {
  if (hasOwn(message, "call")) return begin(message);
  const ask = asks[message.ask];
  if (ask === undefined) return undefined;
  delete asks[message.ask];
  return message.ok === true ? ask.resolve(message.value) : ask.reject(refusalOf(message.error));
}

function begin({ call: id, args, context: facts }) {
  const call = { id, isOver: false, stdout: "", stderr: "" };
  current = call;
  const context = contextOf(call, facts);
  call.streams = facts.streams === true;
  call.joinsText = facts.joinsText === true;
  // One object for both ways of taking it: `execute({ args, context })` and `execute(context)` with the arguments inside.
  const given = { args, context, ...context };
  // The host is notified before the handler runs: a call that did not begin may be given to another process.
  send(channel, `{"call":${id},"begun":true}\n`, (unheard) => {
    if (!unheard) within(calls, call, run, call, given);
  });
}

async function run(call, given) {
  try {
    const answer = await execute(given);
    finish(call, isGenerator(answer) ? await read(call, answer) : valueOf(answer));
  } catch (problem) {
    finish(call, `"thrown":${describe(problem)}`);
  }
}

function isGenerator(answer) {
  if (typeof answer !== "object" || answer === null || typeof answer.next !== "function") return false;
  return typeof answer[asyncIterator] === "function" || typeof answer[iterator] === "function";
}

// The response of a handler that yields is what it yields; a client that reads along gets each item at once.
async function read(call, answer) {
  let joined = call.joinsText ? "" : undefined;
  let items = "";
  let size = 0;
  let count = 0;
  try {
    for (;;) {
      const { done, value } = await answer.next();
      if (done) break;
      const json = toJson(await value);
      if (json === undefined) return `"unsendable":${stringify(nameOf(value))}`;
      size += byteLength(json);
      count += 1;
      if (size > MAX_VALUE_BYTES || count > MAX_ITEMS) return '"tooLong":true';
      items += count === 1 ? json : `,${json}`;
      joined = joined !== undefined && typeof value === "string" ? joined + value : undefined;
      if (call.streams && !call.isOver) await sent(`{"call":${call.id},"do":"chunk","value":${json}}\n`);
    }
  } catch (problem) {
    const reason = textOf(() => problem.message);
    if (reason === HALF) return whyUnsendable(reason);
    throw problem;
  } finally {
    if (typeof answer.return === "function") await answer.return();
  }
  return `"value":{"ok":true,"data":${joined === undefined ? `[${items}]` : toJson(joined)}}`;
}

// Written to the host: a handler that yields faster than the host reads waits.
function sent(line) {
  return new NativePromise((resolve) => send(channel, line, resolve));
}

function finish(call, answer) {
  if (call.isOver) return;
  call.isOver = true;
  current = undefined;
  const printed = `"stdout":${bounded(call.stdout)},"stderr":${bounded(call.stderr)}`;
  send(channel, `{"call":${call.id},${answer},${printed}${isSpent ? ',"spent":true' : ""}}\n`);
}

function contextOf(call, { clientId, tool, session, voice }) {
  const capabilities = {
    messaging: { send: async (message) => ask(call, "messaging.send", `"do":"send","message":${jsonOf("messaging.send", message)}`) },
    voice: { isActive: () => voice === true },
    audit: { log: (event, data) => audit(call, event, data) },
  };
  return {
    clientId,
    tool,
    session,
    ...capabilities,
    capabilities, // where some authors look for them
    progress: (progress, total = null, message = "") => {
      const figures = `"progress":${jsonOf("progress", progress)},"total":${jsonOf("progress", total)}`;
      tell(call, "progress", `"do":"progress",${figures},"message":${jsonOf("progress", message)}`);
    },
    log: (level, data = null) => {
      if (!hasOwn(LEVELS, level)) throw new NativeTypeError(`log(level, data): there is no level ${textOf(() => level)}`);
      tell(call, "log", `"do":"log","level":${stringify(level)},"data":${jsonOf("log", data)}`);
    },
    elicit: async (message, schema, { key = "" } = {}) => {
      const asked = `"message":${jsonOf("elicit", message)},"schema":${jsonOf("elicit", schema)}`;
      return ask(call, "elicit", `"do":"elicit",${asked},"key":${jsonOf("elicit", key)}`);
    },
    sample: async (messages, { maxTokens = 1000, key = "", ...more } = {}) => {
      const asked = `"messages":${jsonOf("sample", messages)},"maxTokens":${jsonOf("sample", maxTokens)}`;
      return ask(call, "sample", `"do":"sample",${asked},"key":${jsonOf("sample", key)},"more":${jsonOf("sample", more)}`);
    },
    roots: async ({ key = "" } = {}) => ask(call, "roots", `"do":"roots","key":${jsonOf("roots", key)}`),
  };
}

function jsonOf(what, value) {
  const json = toJson(value);
  if (json === undefined) throw new NativeTypeError(`${what}: ${nameOf(value)} cannot be sent; send an object`);
  if (byteLength(json) > MAX_VALUE_BYTES) throw new NativeTypeError(`${what}: the message has more than 8 MB`);
  return json;
}

function ask(call, what, fields) {
  refuseIfOver(call, what);
  lastAsk += 1;
  const id = lastAsk;
  return new NativePromise((resolve, reject) => {
    asks[id] = { resolve, reject };
    send(channel, `{"call":${call.id},"ask":${id},${fields}}\n`);
  });
}

function tell(call, what, fields) {
  refuseIfOver(call, what);
  send(channel, `{"call":${call.id},${fields}}\n`);
}

// The refusal of a question is typed, that of a message to the session is a text.
function refusalOf(error) {
  if (typeof error === "string") return new NativeError(error);
  const refusal = new NativeError(error.message);
  refusal.name = "ToolError";
  refusal.type = error.type;
  refusal.retryable = error.retryable === true;
  refusal.details = error.details;
  return refusal;
}

function audit(call, event, data = {}) {
  refuseIfOver(call, "audit.log");
  if (typeof event !== "string") throw new NativeTypeError("audit.log(event, data): the event is a text");
  const json = toJson(data);
  if (json === undefined || json[0] !== "{") throw new NativeTypeError("audit.log(event, data): the data is an object");
  if (byteLength(json) > MAX_VALUE_BYTES) throw new NativeTypeError("audit.log: the data has more than 8 MB");
  tell(call, "audit.log", `"do":"audit","event":${toJson(event)},"data":${json}`);
}

function refuseIfOver(call, what) {
  if (call.isOver) throw new NativeError(`${what}: the call that this context belongs to is over; await it before returning`);
}

function valueOf(value) {
  let json;
  try {
    json = toJson(value);
  } catch (problem) {
    return whyUnsendable(textOf(() => problem.message));
  }
  if (json === undefined) return `"unsendable":${stringify(nameOf(value))}`;
  return byteLength(json) > MAX_VALUE_BYTES ? '"tooLong":true' : `"value":${json}`;
}

// Strict JSON: a lone surrogate can be escaped in it, but not decoded.
function toJson(value) {
  const json = stringify(value);
  if (json !== undefined && indexOf(json, "\\ud") >= 0) stringify(value, refuseHalves);
  return json;
}

function refuseHalves(key, value) {
  if (!isWellFormed(key) || (typeof value === "string" && !isWellFormed(value))) throw new NativeTypeError(HALF);
  return value;
}

function whyUnsendable(reason) {
  if (reason === HALF) return `"unsendable":${stringify(`an object with ${HALF}`)}`;
  if (reason === "Invalid string length") return '"tooLong":true';
  if (startsWith(reason, "Converting circular")) return '"unsendable":"an object that holds itself"';
  if (indexOf(reason, "BigInt") >= 0) return '"unsendable":"a BigInt"';
  return `"unsendable":${stringify(`an object that cannot be read (${slice(reason, 0, 200)})`)}`;
}

function nameOf(value) {
  if (typeof value === "function") return "a function";
  if (typeof value === "symbol") return "a symbol";
  return value === undefined ? "undefined" : "an object whose toJSON gives nothing";
}

// The thrown value as JSON; reading its properties may throw in turn.
function describe(problem) {
  const isObject = (typeof problem === "object" && problem !== null) || typeof problem === "function";
  if (!isObject) {
    const kind = problem === null ? "null" : typeof problem;
    return `{"name":${stringify(kind)},"message":${stringify(textOf(() => problem))},"stack":""}`;
  }
  const name = textOf(() => problem.name) || textOf(() => problem.constructor.name) || "Object";
  const message = stringify(textOf(() => problem.message) || textOf(() => stringify(problem)));
  const facts = `"name":${stringify(name)},"message":${message},"stack":${stringify(textOf(() => problem.stack))}`;
  const type = name === "ToolError" ? textOf(() => problem.type) : "";
  if (type === "") return `{${facts}}`;
  const flags = `"retryable":${isTrue(() => problem.retryable)},"partialSideEffects":${isTrue(() => problem.partialSideEffects)}`;
  const details = detailsOf(() => problem.details);
  return `{${facts},"toolError":{"type":${stringify(type)},"message":${message},${flags},"details":${details}}}`;
}

function textOf(read) {
  try {
    const text = read();
    return text === undefined ? "" : toWellFormed(slice(makeString(text), 0, MAX_TEXT));
  } catch {
    return "";
  }
}

function isTrue(read) {
  try {
    return read() === true;
  } catch {
    return false;
  }
}

function detailsOf(read) {
  try {
    const details = read();
    const json = isArray(details) ? undefined : toJson(details);
    return json !== undefined && json[0] === "{" && byteLength(json) <= MAX_DETAILS_BYTES ? json : "{}";
  } catch {
    return "{}";
  }
}

// A string as JSON of bounded length: a character may take up to six bytes.
function bounded(text) {
  let json = stringify(toWellFormed(text));
  while (byteLength(json) > MAX_PRINTED_BYTES) {
    text = slice(text, 0, text.length / 2);
    json = stringify(toWellFormed(text));
  }
  return json;
}

// Output of a call belongs to its answer; any other output goes to the stream of the process.
function capture(name) {
  const stream = process[name];
  const write = stream.write.bind(stream);
  stream.write = (chunk, encoding, done) => {
    const call = storeOf(calls);
    if (call === undefined || call.isOver) return write(chunk, encoding, done);
    const text = typeof chunk === "string" ? chunk : makeBuffer(chunk).toString();
    call[name] += slice(text, 0, MAX_PRINTED - call[name].length);
    const heard = typeof encoding === "function" ? encoding : done;
    if (typeof heard === "function") process.nextTick(heard);
    return true;
  };
}

// An uncaught error fails the call that it came from, if that is still running; otherwise it is logged. If its call is
// unknown it may belong to another client: the running call fails without the message.
function notice(problem) {
  const call = storeOf(calls);
  const isParting = isSpent && current === undefined;
  isSpent = true;
  if (isParting) return;
  if (current !== undefined && call === current) return finish(call, `"thrown":${describe(problem)}`);
  const line = `{"stray":${describe(problem)},"of":${call === undefined ? null : call.id}}\n`;
  if (current === undefined) return hangUp(channel, line, () => exit(1));
  send(channel, line);
  if (call === undefined) finish(current, '"thrown":{"name":"Error","message":"","stack":""}');
}

function open() {
  const descriptor = Number(process.env.TOOLCRIB_CHANNEL);
  delete process.env.TOOLCRIB_CHANNEL;
  channel = new Socket({ fd: descriptor, readable: true, writable: true });
  channel.setEncoding("utf8");
  channel.on("data", take);
  channel.on("error", () => exit(0));
  channel.on("close", () => exit(0));
}

function isTooOld() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  return major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
}

async function start() {
  const [program, , file, under, ...folders] = process.argv;
  process.argv = [program, file];
  open();
  if (isTooOld()) return send(channel, '{"failed":{"reason":"old Node"}}\n');
  try {
    capture("stdout");
    capture("stderr");
    const loaded = await loadHandler(file, { under, folders });
    execute = loaded.execute ?? loaded.default?.execute;
  } catch (problem) {
    return send(channel, `{"failed":${describe(problem)}}\n`);
  }
  if (typeof execute !== "function") return send(channel, '{"failed":{"reason":"no execute"}}\n');
  process.on("uncaughtException", notice);
  return send(channel, '{"ready":true}\n');
}

start();
