import { expect, test } from "vitest";
import { AUTH_TYPES } from "./auth";
import { functionDocument, queryDocument, toDocument } from "./document";
import { addPart, changeRun, ONE_PAGE } from "./http";
import { assign, changeStep, type Recipe, type Step, withoutUnused } from "./model";
import { readStart } from "./start";
import { isSame, openDocument, openTool, type Plain, writtenOf } from "./stored";

function step(text: string, name = "first"): Step {
  const start = readStart(text, name);
  if (start.kind !== "request") throw new Error(JSON.stringify(start));
  return start.step;
}

function recipe(...steps: Step[]): Recipe {
  return { title: "Weather", description: "The weather of a city", inputs: [], steps };
}

function opened(document: Plain) {
  const found = openDocument(document);
  if (!found) throw new Error("it was not opened");
  return found;
}

const written = (made: Recipe) => toDocument(made) as unknown as Plain;

// What a person can make with the builder.
const MADE: Record<string, Recipe> = {
  "an address with parts": assign(recipe(step("https://api.example.com/v1/a%20b/?q=Oslo&key=abc")), 0, "query 0", { kind: "input", name: "city" }),
  "an address without a path": recipe(step("https://api.example.com")),
  "a secret in a header": recipe(step("curl -H 'Authorization: Bearer s3cret' https://api.example.com/x")),
  "JSON": assign(recipe(step(`curl https://x.example.com/o --json '{"item": "$\{lamp}", "n": 2, "tags": ["a"], "deep": {"er": null}}'`)), 0, "body n", { kind: "input", name: "count" }),
  "a form": assign(recipe(step("curl https://x.example.com/login -d 'user=ada&lang=en us'")), 0, "body 0", { kind: "input", name: "user" }),
  "plain text": recipe(step(`curl https://x.example.com/a -d 'plain $\{city} text' -H 'Content-Type: text/plain'`)),
  "a kept place": changeStep(recipe(step("https://x.example.com/a")), 0, (one) => ({ ...one, answer: { kind: "json", value: { "a b": [{ c: 1 }] } }, keep: { kind: "path", path: ["a b", "*", "c"] } })),
  "an XML element": changeStep(recipe(step("https://x.example.com/a")), 0, (one) => ({ ...one, answer: { kind: "text", text: "<a>1</a>" }, keep: { kind: "element", name: "a" } })),
  "pages": changeRun(recipe(step("https://x.example.com/a?page=1")), 0, { pages: { ...ONE_PAGE, type: "cursor", parameter: "after", next: ["next"], items: ["found", "list"], size: "20", most: "3", truncate: true } }),
  "two requests": assign(
    recipe({ ...step("https://shop.example.com/orders", "order"), answer: { kind: "json", value: { id: [7] } } }, step("https://shop.example.com/parcels/1", "parcel")),
    1, "path 1", { kind: "step", step: "order", path: ["id", 0] },
  ),
};

test.each(Object.keys(MADE))("what was made here is opened as it was made: %s", (name) => {
  const document = written(MADE[name] as Recipe);
  const { recipe: again, kept } = opened(document);
  expect(toDocument(again)).toEqual(document);
  // Without its example an answer is only known by how it is read.
  expect(kept.filter((place) => place !== "impl.responseEncoding")).toEqual([]);
});

test.each(AUTH_TYPES)("credentials are opened in their form: %s", (type) => {
  const values: Record<string, string> = type === "api_key" ? { key: "KEY", where: "query", query: "appid" } : {};
  const document = written(changeRun(recipe(step("https://x.example.com/a")), 0, { auth: { type, values } }));
  const { recipe: again, kept } = opened(document);
  expect(again.steps[0]?.run.auth.type).toBe(type);
  expect(kept).toEqual([]);
});

const BY_HAND: Plain = {
  schemaVersion: "toolcrib-1",
  displayName: "Search",
  description: "Find\nthings.",
  type: "http",
  isEnabled: false,
  tags: ["find"],
  maxCallsPerMinute: 5,
  argSchema: {
    type: "object",
    required: ["q", "days"],
    properties: {
      days: { type: "integer", minimum: 1, description: "How many." },
      q: { type: "string", minLength: 2 },
      where: { type: "object", properties: { city: { type: "string" } } },
      unused: { type: "boolean" },
    },
    $defs: { x: {} },
  },
  outputSchema: { type: "object", required: ["b", "a"], properties: { a: {} } },
  impl: {
    method: "POST",
    urlTemplate: "https://api.example.com/${q}-${days}/x%2Fy?z=${q}",
    query: { a: "x${q}", n: 3, plain: "$${q}" },
    headers: { "X-Key": "Token ${KEY}", "X-Who": "Bearer ${q}" },
    bodyTemplate: '{"days": ${days}, "where": "${where}"}',
    auth: { type: "bearer", token: "prefix ${secret:KEY}" },
    pagination: { type: "page", parameter: "page", later: true },
    extractExpr: "$..title",
    retry: { attempts: 3 },
    successCodes: [200, 404],
  },
};

test("what the builder has no field for is named, and stays as it is written", () => {
  const { recipe: again, kept } = opened(BY_HAND);
  expect(toDocument(again)).toEqual({ ...BY_HAND, argSchema: { ...(BY_HAND.argSchema as Plain), required: ["days", "q"] } });
  expect(kept).toEqual([
    "maxCallsPerMinute",
    "argSchema.$defs",
    "days.minimum",
    "q.minLength",
    "where",
    ...["retry", "successCodes", "query", "auth", "pagination"].map((key) => `impl.${key}`),
    ...["${q}-${days}", "x%2Fy?z=${q}", "x${q}", "Bearer ${q}"].map((text) => `impl: ${text}`),
    "impl.bodyTemplate",
    "impl.extractExpr",
  ]);
});

test("a change changes only what it is about", () => {
  const { recipe: again } = opened(BY_HAND);
  const part = again.steps[0]?.parts.find((one) => one.label === "plain");
  const changed = written(assign(addPart(again, 0, "query", "lang", "en"), 0, part?.id ?? "", { kind: "input", name: "lang" }));
  const { impl, argSchema, ...others } = changed as { impl: Plain; argSchema: { properties: Plain } };
  const before = BY_HAND as { impl: Plain; argSchema: { properties: Plain } };
  expect(impl).toEqual({ ...before.impl, query: { ...(before.impl.query as Plain), plain: "${lang}", lang: "en" } });
  expect(argSchema.properties).toEqual({ ...before.argSchema.properties, lang: { type: "string" } });
  expect(others).toEqual(Object.fromEntries(Object.entries(BY_HAND).filter(([key]) => key !== "impl" && key !== "argSchema")));
});

test("inputs that only kept text names, and those that nothing names, are not left out", () => {
  expect(withoutUnused(opened(BY_HAND).recipe).inputs.map((input) => input.name)).toEqual(["days", "q", "where", "unused"]);
});

test("JSON keeps its own layout until something in it is changed", () => {
  const impl = { method: "POST", urlTemplate: "https://x.example.com/a", bodyTemplate: '{"a":"${q}", "b": 1}' };
  const { recipe: again, kept } = opened({ ...BY_HAND, impl });
  expect(kept).not.toContain("impl.bodyTemplate");
  expect(toDocument(again).impl.bodyTemplate).toBe(impl.bodyTemplate);
  const fixed = changeStep(again, 0, (one) => ({ ...one, parts: one.parts.map((part) => (part.label === "b" ? { ...part, value: 2 } : part)) }));
  expect(JSON.parse(toDocument(fixed).impl.bodyTemplate as string)).toEqual({ a: "${q}", b: 2 });
});

test("what the schema of the result says holds until something else is kept of the answer", () => {
  const { recipe: again } = opened(BY_HAND);
  const tried = changeStep(again, 0, (one) => ({ ...one, answer: { kind: "json", value: { a: "x" } } }));
  expect(toDocument(tried).outputSchema).toEqual(BY_HAND.outputSchema);
  const picked = changeStep(tried, 0, (one) => ({ ...one, keep: { kind: "path", path: ["a"] } }));
  expect(toDocument(picked).outputSchema).toEqual({ type: "string" });
});

test("several requests in a list keep what is said for all of them", () => {
  const calls = [{ name: "one", method: "GET", urlTemplate: "https://x.example.com/a" }, { name: "two", method: "GET", urlTemplate: "https://x.example.com/${one.id}/${one.list[0].name}" }];
  const { recipe: again, kept } = opened({ ...BY_HAND, impl: { calls, timeoutMs: 5000 } });
  expect(toDocument(again).impl).toEqual({ calls, timeoutMs: 5000 });
  expect(kept).toContain("impl.timeoutMs");
  expect(again.steps[1]?.parts[1]?.source).toEqual({ kind: "step", step: "one", path: ["list", 0, "name"] });
});

test("a request that names no method is one that reads", () => {
  const { recipe: again } = opened({ ...BY_HAND, impl: { urlTemplate: "http://127.0.0.1:8765/crib/health", extractExpr: "$.ready" } });
  expect(toDocument(again).impl).toEqual({ method: "GET", urlTemplate: "http://127.0.0.1:8765/crib/health", extractExpr: "$.ready" });
});

test("a tool that would be another one afterwards is not opened", () => {
  const impl = BY_HAND.impl as Plain;
  for (const wrong of [{ type: "go" }, { impl: { ...impl, method: "TRACE" } }, { impl: { ...impl, query: "a=b" } }, { impl: { calls: [null] } }, { argSchema: [] }]) {
    expect(openDocument({ ...BY_HAND, ...wrong })).toBe(null);
  }
});

test("a question to a database and a function are opened as they are written", () => {
  const impl = { database: " shop.sqlite", statement: "SELECT :q ", write: true, returns: "list", maxRows: 5, choices: { q: { a: "1" } } };
  const asked = openTool({ ...BY_HAND, type: "sql", impl });
  if (asked?.kind !== "query") throw new Error("it was not opened");
  expect(asked.query).toEqual({ database: " shop.sqlite", statement: "SELECT :q ", write: true, returns: "list" });
  expect(asked.kept).toEqual(expect.arrayContaining(["impl.maxRows", "impl.choices"]));
  const again = queryDocument(asked.recipe, { ...asked.query, statement: "SELECT 1" });
  expect(isSame(again, { ...BY_HAND, type: "sql", impl: { ...impl, database: "shop.sqlite", statement: "SELECT 1" } })).toBe(true);
  const called = openTool({ ...BY_HAND, type: "go", impl: { goFunc: "dice.roll", model: "small" } });
  if (called?.kind !== "function") throw new Error("it was not opened");
  expect(functionDocument(called.recipe, "dice.throw").impl).toEqual({ goFunc: "dice.throw", model: "small" });
});

test("a statement that the builder cannot hold is not opened", () => {
  const impl = { database: "a", statement: "SELECT 1" };
  for (const wrong of [{ ...impl, database: 1 }, { ...impl, write: "yes" }, { ...impl, returns: "table" }]) {
    expect(openTool({ ...BY_HAND, type: "sql", impl: wrong })).toBe(null);
  }
  expect(openTool({ ...BY_HAND, type: "sql", impl, argSchema: [] })).toBe(null);
  expect(openTool({ ...BY_HAND, type: "go", impl: {} })).toBe(null);
});

test("what the server says of a version is no part of what a person wrote", () => {
  expect(writtenOf({ ...BY_HAND, toolID: "x", version: "v1", callCount: 3, icons: [] })).toEqual({ ...BY_HAND, icons: [] });
});
