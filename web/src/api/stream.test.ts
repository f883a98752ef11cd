import { expect, test, vi } from "vitest";
import { EventCutter } from "./events";
import { streamCall } from "./stream";

test("events are the same however their text is cut", () => {
  const text = ': begun\n\nevent: chunk\ndata: {"number":1}\n\ndata: one\ndata:two\n\nevent: empty\n\nevent: result\ndata: {}\n\n';
  for (let size = 1; size <= text.length; size += 1) {
    const cutter = new EventCutter();
    const found = [];
    for (let place = 0; place < text.length; place += size) found.push(...cutter.feed(text.slice(place, place + size)));
    expect(found).toEqual([{ name: "chunk", data: '{"number":1}' }, { name: "message", data: "one\ntwo" }, { name: "result", data: "{}" }]);
  }
});

test("chunks are heard before the result, and a refusal is a result", async () => {
  const events = 'event: progress\ndata: {"progress":1,"total":2,"message":""}\n\nevent: chunk\ndata: {"number":1,"value":"a","checked":false}\n\nevent: result\ndata: {"ok":true,"value":["a"],"intents":[],"meta":{}}\n\n';
  const answers = [
    new Response(events, { headers: { "content-type": "text/event-stream; charset=utf-8" } }),
    new Response('{"ok":false,"error":{"type":"VALIDATION","message":"no"},"intents":[],"meta":{},"detail":"no"}', { status: 400, headers: { "content-type": "application/problem+json" } }),
    new Response("event: chunk\n", { headers: { "content-type": "text/event-stream" } }),
  ];
  vi.stubGlobal("fetch", () => Promise.resolve(answers.shift()));
  const heard: string[] = [];
  const stop = new AbortController();
  const result = await streamCall({ name: "x", args: {} }, stop.signal, (told) => heard.push(told.name));
  expect([heard, result.ok]).toEqual([["progress", "chunk"], true]);
  expect((await streamCall({ name: "x", args: {} }, stop.signal, () => undefined)).ok).toBe(false);
  await expect(streamCall({ name: "x", args: {} }, stop.signal, () => undefined)).rejects.toThrow();
  vi.unstubAllGlobals();
});
