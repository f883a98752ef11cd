// Call a function that a file exports, with arguments from standard input, and write what it returns as one line of JSON.
//
// node call.cjs FILE EXPORT < {"arguments": {…}, "style": "whole" | "names", "names": […], "rest": "", "revive": {…}}
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const url = require("node:url");
const { loadHandler } = require("./modules.cjs");
const { chunk, endChunks } = require("./rye.cjs");

const MAX_ITEMS = 100_000;
const MAX_DEPTH = 100;
const MAX_PRINTED = 8 * 1024 * 1024;
const MAKE = {
  date: (value) => new Date(value),
  bigint: (value) => BigInt(value),
  url: (value) => new URL(value),
  set: (value) => new Set(value),
  map: (value) => new Map(Object.entries(value)),
};

const [file, name] = process.argv.slice(2);
const order = JSON.parse(fs.readFileSync(0, "utf8"));
process.argv.splice(1, 3, file);

// What the file prints is kept apart from what it returns.
const printed = [];
let size = 0;
let answered = false;

process.stdout.write = (chunk, encoding, done) => {
  const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
  size += text.length;
  if (size <= MAX_PRINTED) printed.push(text);
  const finished = typeof encoding === "function" ? encoding : done;
  if (typeof finished === "function") process.nextTick(finished);
  return true;
};

process.on("exit", (code) => {
  if (!answered && code === 0) answer({ missing: true, early: true });
});

function answer(message) {
  if (answered) return;
  answered = true;
  const text = JSON.stringify({ ...message, printed: size > MAX_PRINTED ? null : printed.join("") });
  const data = Buffer.from(`${text}\n`);
  for (let written = 0; written < data.length; ) {
    try {
      written += fs.writeSync(1, data, written);
    } catch (problem) {
      if (problem.code !== "EAGAIN") throw problem;
    }
  }
}

class Unwritable extends Error {}

// The value as JSON has it: what has no form there is an error with its place, and never null.
function plain(value, place, seen) {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    throw new Unwritable(`${place} is ${value}`);
  }
  if (typeof value === "bigint") {
    if (value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
    throw new Unwritable(`${place} is a bigint that no number holds; return it as text`);
  }
  if (typeof value !== "object") throw new Unwritable(`${place} is a ${typeof value}`);
  if (seen.includes(value)) throw new Unwritable(`${place} holds itself`);
  if (seen.length > MAX_DEPTH) throw new Unwritable(`${place} lies more than ${MAX_DEPTH} deep`);
  const inner = [...seen, value];
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw new Unwritable(`${place} is an invalid Date`);
    return value.toISOString();
  }
  if (Buffer.isBuffer(value) || value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (value instanceof RegExp || value instanceof URL) return String(value);
  if (value instanceof Error) throw new Unwritable(`${place} is an Error: ${value.message}; throw it`);
  if (value instanceof Map) {
    return Object.fromEntries([...value].map(([key, item]) => [String(key), plain(item, `${place}.${String(key)}`, inner)]));
  }
  if (typeof value.toJSON === "function") return plain(value.toJSON(), place, inner);
  if (Array.isArray(value) || value instanceof Set || ArrayBuffer.isView(value)) {
    return [...value].map((item, index) => (item === undefined ? null : plain(item, `${place}[${index}]`, inner)));
  }
  const entries = Object.entries(value).filter(([, item]) => item !== undefined && typeof item !== "function");
  return Object.fromEntries(entries.map(([key, item]) => [key, plain(item, `${place}.${key}`, inner)]));
}

// A generator, async or not, becomes the list of what it yields; a client that reads along gets each item at once.
async function collected(value) {
  if (value === null || typeof value !== "object" || typeof value.next !== "function") return value;
  const items = [];
  if (typeof value[Symbol.asyncIterator] !== "function" && typeof value[Symbol.iterator] !== "function") return value;
  for await (const item of value) {
    items.push(item);
    if (items.length > MAX_ITEMS) throw new Unwritable(`it yields more than ${MAX_ITEMS} values`);
    if (order.streams) await chunk(item === undefined ? null : plain(item, `the result[${items.length - 1}]`, []));
  }
  if (order.streams) await endChunks();
  return order.joinsText && items.every((item) => typeof item === "string") ? items.join("") : items;
}

function bind() {
  const values = { ...order.arguments };
  for (const [key, how] of Object.entries(order.revive)) {
    if (values[key] !== undefined && values[key] !== null) values[key] = MAKE[how](values[key]);
  }
  if (order.style === "whole") return [values];
  const bound = order.names.map((key) => values[key]);
  return order.rest ? [...bound, ...(values[order.rest] ?? [])] : bound;
}

async function load() {
  if (/\.[cm]?ts$|\.[cm]js$/.test(file)) return import(url.pathToFileURL(file).href);
  return loadHandler(file, { under: path.dirname(file), folders: [path.dirname(file)] });
}

function find(loaded) {
  const places = [loaded, loaded.default, loaded["module.exports"]].filter((place) => place !== undefined && place !== null);
  if (name === "default") {
    const found = places.flatMap((place) => [place.default, place]).find((value) => typeof value === "function");
    return found;
  }
  return places.map((place) => place[name]).find((value) => typeof value === "function");
}

function describe(problem) {
  if (!(problem instanceof Error)) return { name: "Error", message: String(problem), stack: "" };
  return { name: problem.name, message: problem.message, stack: String(problem.stack), code: problem.code };
}

async function run() {
  const called = find(await load());
  if (called === undefined) return answer({ error: { name: "LookupError", message: `there is no exported function ${name}`, stack: "" } });
  let value;
  try {
    value = await collected(await called(...bind()));
  } catch (problem) {
    if (problem instanceof Unwritable) return answer({ unwritable: problem.message });
    return answer({ error: describe(problem) });
  }
  if (value === undefined) return answer({ missing: true });
  try {
    answer({ value: plain(value, "the result", []) });
  } catch (problem) {
    answer({ unwritable: problem.message });
  }
}

process.on("uncaughtException", (problem) => {
  answer({ error: describe(problem) });
  process.exit(0);
});

run().then(
  () => process.exit(0),
  (problem) => {
    answer({ error: describe(problem) });
    process.exit(0);
  },
);
