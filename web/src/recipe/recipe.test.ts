import { expressionOf, keptOf, toDocument } from "./document";
import { assign, leaves, moveStep, outputsBefore, type Recipe, removeStep, type Step } from "./model";
import { readStart, shellWords } from "./start";

function step(text: string, name = "first"): Step {
  const start = readStart(text, name);
  if (start.kind !== "request") throw new Error(JSON.stringify(start));
  return start.step;
}

function recipe(...steps: Step[]): Recipe {
  return { title: "Weather", description: "The weather of a city", inputs: [], steps };
}

test("a pasted URL becomes parts, and what looks like a key becomes a secret", () => {
  const made = step("https://api.example.com/v1/current.json?q=Oslo&key=abc123");
  expect(made.parts.map((part) => [part.place, part.label, part.value, part.source.kind])).toEqual([
    ["path", "1", "v1", "fixed"],
    ["path", "2", "current.json", "fixed"],
    ["query", "q", "Oslo", "fixed"],
    ["query", "key", "abc123", "secret"],
  ]);
});

test("the secret itself never stands in the document", () => {
  const made = recipe(step("curl -H 'Authorization: Bearer s3cret' 'https://api.example.com/x?api_key=k3y'"));
  const text = JSON.stringify(toDocument(made));
  expect(text).not.toContain("s3cret");
  expect(text).not.toContain("k3y");
  expect(text).toContain("Bearer ${AUTHORIZATION}");
});

test("a clicked part becomes an input with a slot and a schema", () => {
  const made = assign(recipe(step("https://api.example.com/v1/Oslo?days=3")), 0, "path 1", { kind: "input", name: "city" });
  const document = toDocument(made);
  expect(document.impl).toEqual({ method: "GET", urlTemplate: "https://api.example.com/v1/${city}", query: { days: "3" } });
  expect(document.argSchema).toEqual({ type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false });
});

test("an input that nothing uses any more goes", () => {
  const one = assign(recipe(step("https://api.example.com/a")), 0, "path 0", { kind: "input", name: "word" });
  expect(assign(one, 0, "path 0", { kind: "fixed" }).inputs).toEqual([]);
});

test("a JSON body keeps its numbers, and a slot stands alone between its quotes", () => {
  const made = assign(recipe(step(`curl https://shop.example.com/orders --json '{"item": "lamp", "count": 2, "tags": ["a"]}'`)), 0, "body count", { kind: "input", name: "count" });
  const { impl, argSchema } = toDocument(made);
  expect(JSON.parse(impl.bodyTemplate as string)).toEqual({ item: "lamp", count: "${count}", tags: ["a"] });
  expect(impl.method).toBe("POST");
  expect(argSchema.properties).toEqual({ count: { type: "integer" } });
});

test("text that looks like a slot stays text", () => {
  const made = recipe(step(`curl https://x.example.com/a -H 'X-Note: \${city}' -d 'plain \${city} text' -H 'Content-Type: text/plain'`));
  const { impl } = toDocument(made);
  expect(impl.bodyTemplate).toBe("plain $${city} text");
  expect((impl.headers as Record<string, string>)["X-Note"]).toBe("$${city}");
});

test("a form post keeps its fields", () => {
  const made = assign(recipe(step("curl https://x.example.com/login -d 'user=ada&lang=en us'")), 0, "body 0", { kind: "input", name: "user" });
  expect(toDocument(made).impl.bodyTemplate).toBe("user=${user}&lang=en%20us");
});

test("an output of one step goes into a slot of the next, and only single values are offered", () => {
  const order = { ...step("https://shop.example.com/orders", "order"), answer: { kind: "json" as const, value: { parcel: { id: 7, route: [] } } } };
  const made = assign(recipe(order, step("https://shop.example.com/parcels/1", "parcel")), 1, "path 1", { kind: "step", step: "order", path: ["parcel", "id"] });
  expect(outputsBefore(made, 1)).toEqual([{ step: "order", path: ["parcel", "id"], value: 7 }]);
  const calls = toDocument(made).impl.calls as Record<string, unknown>[];
  expect(calls[1]?.urlTemplate).toBe("https://shop.example.com/parcels/${order.parcel.id}");
});

test("a step that is removed or moved leaves no slot that names it before it ran", () => {
  const order = { ...step("https://a.example.com/x", "order"), answer: { kind: "json" as const, value: { id: 1 } } };
  const made = assign(recipe(order, step("https://a.example.com/y", "parcel")), 1, "path 0", { kind: "step", step: "order", path: ["id"] });
  for (const changed of [removeStep(made, 0), moveStep(made, 0, 1)]) {
    expect(changed.steps.find((one) => one.name === "parcel")?.parts[0]?.source).toEqual({ kind: "fixed" });
  }
});

test("what is kept becomes a JSONPath, with a star for all of a list", () => {
  const answer = { items: [{ name: "a", "odd key": 1 }, { name: "b" }] };
  expect(expressionOf({ kind: "path", path: ["items", "*", "name"] })).toBe("$.items[*].name");
  expect(expressionOf({ kind: "path", path: ["items", 0, "odd key"] })).toBe("$.items[0]['odd key']");
  expect(keptOf(answer, ["items", "*", "name"])).toEqual(["a", "b"]);
});

test("a curl command is read with its quotes, and an unclosed one is refused", () => {
  expect(shellWords(`curl 'a b' "c\\"d" e\\ f`)).toEqual(["curl", "a b", 'c"d', "e f"]);
  expect(readStart("curl 'https://x.example.com", "a").kind).toBe("nothing");
  expect(readStart("curl -F file=@x https://x.example.com", "a").kind).toBe("nothing");
});

test.each(["", "   ", "hello", "ftp://x", "curl", "curl -X BREW https://x.example.com"])("%j starts nothing", (text) => {
  expect(readStart(text, "a").kind).toBe("nothing");
});

test("an example answer is taken as JSON or XML", () => {
  expect(readStart('{"a": 1}', "a")).toEqual({ kind: "answer", answer: { kind: "json", value: { a: 1 } } });
  expect(readStart("<r><t>4</t></r>", "a").kind).toBe("answer");
});

test("a large answer offers a bounded number of values", () => {
  expect(leaves(Array.from({ length: 10_000 }, (_, place) => place)).length).toBeLessThanOrEqual(500);
});
