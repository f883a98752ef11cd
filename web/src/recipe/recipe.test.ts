import { AUTH_TYPES, fieldsOf, labelOf, toDeclaration } from "./auth";
import { namesIn, problemsOf, queryDocument, toDocument } from "./document";
import { addPart, changeRun, ONE_PAGE } from "./http";
import { expressionOf, keptOf } from "./keep";
import { KINDS } from "./kinds";
import { assign, changeStep, type Json, moveStep, openParts, type Part, type Recipe, removeStep, type Step, valuesIn } from "./model";
import { offersFor, outputsBefore } from "./offers";
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

function answered(text: string, value: Json, name = "order"): Step {
  return { ...step(text, name), answer: { kind: "json", value } };
}

function partOf(made: Recipe, place: number, id: string): Part {
  return made.steps[place]?.parts.find((part) => part.id === id) as Part;
}

function offered(made: Recipe, id: string): string[] {
  return offersFor(made, 1, partOf(made, 1, id)).outputs.map((one) => one.path.join("."));
}

const ANSWER = { id: 7, name: "lamp", gift: true, note: null, tags: ["a"], sizes: [1, 2], box: { wide: 2 }, day: "2026-03-01", uuid: "0b5c6e1e-9f0a-4a2c-8f57-2f5f3f0e7a11", "odd key": 1 };

test("an address takes single values, and JSON what its example was", () => {
  const post = `curl https://a.example.com/x/1 --json '{"count": 2, "item": "b", "tags": ["x"], "box": {"wide": 1}, "free": null, "gift": false}'`;
  const made = recipe(answered("https://a.example.com/first", ANSWER), step(post, "second"));
  const single = ["id", "name", "gift", "tags.0", "sizes.0", "sizes.1", "box.wide", "day", "uuid"];
  expect(offered(made, "path 1")).toEqual(single);
  expect(offered(made, "body free")).toEqual(single);
  expect(offered(made, "body count")).toEqual(["id", "sizes.0", "sizes.1", "box.wide"]);
  expect(offered(made, "body item")).toEqual(["name", "tags.0", "day", "uuid"]);
  expect(offered(made, "body gift")).toEqual(["gift"]);
  expect(offered(made, "body tags")).toEqual(["tags"]);
  expect(offered(made, "body box")).toEqual(["", "box"]);
});

test("a format and the choices of an input are compared too", () => {
  const made = recipe(answered("https://a.example.com/first", ANSWER), step("https://a.example.com/on/2025-01-01/0b5c6e1e-0000-4a2c-8f57-2f5f3f0e7a11?size=s", "second"));
  expect(offered(made, "path 1")).toEqual(["day"]);
  expect(offered(made, "path 2")).toEqual(["uuid"]);
  const chosen = assign(made, 1, "query 0", { kind: "input", name: "size" });
  const limited = { ...chosen, inputs: chosen.inputs.map((input) => ({ ...input, choices: ["lamp", "desk"] })) };
  expect(offered(limited, "query 0")).toEqual(["name"]);
});

test("where nothing fits, the reason says what is needed", () => {
  const made = recipe(answered("https://a.example.com/first", { name: "lamp" }), step(`curl https://a.example.com/x --json '{"count": 2}'`, "second"));
  expect(offersFor(made, 1, partOf(made, 1, "body count"))).toEqual({ outputs: [], reason: "None of the 2 values of earlier answers fits: a number is needed here." });
  const unanswered = recipe(step("https://a.example.com/first", "order"), step("https://a.example.com/x", "second"));
  expect(offersFor(unanswered, 1, partOf(unanswered, 1, "path 0")).reason).toContain("no answer yet");
});

test("a text that an earlier request gives can be used as a whole", () => {
  const made = recipe({ ...step("https://a.example.com/token", "token"), answer: { kind: "text", text: "abc" } }, step("https://a.example.com/x?t=1", "second"));
  expect(offered(made, "query 0")).toEqual([""]);
  const calls = toDocument(assign(made, 1, "query 0", { kind: "step", step: "token", path: [] })).impl.calls as Record<string, unknown>[];
  expect(calls[1]?.query).toEqual({ t: "${token}" });
});

test("a list that comes from elsewhere replaces what stood in it", () => {
  const post = `curl https://a.example.com/x --json '{"tags": ["x", "y"], "n": 1}'`;
  const one = assign(recipe(answered("https://a.example.com/first", ANSWER), step(post, "second")), 1, "body tags.0", { kind: "input", name: "tag" });
  const made = assign(one, 1, "body tags", { kind: "step", step: "order", path: ["tags"] });
  expect(made.inputs).toEqual([]);
  expect(openParts(made.steps[1] as Step).map((part) => part.label)).toEqual(["1", "Content-Type", "Accept", "tags", "n"]);
  const calls = toDocument(made).impl.calls as Record<string, unknown>[];
  expect(JSON.parse(calls[1]?.bodyTemplate as string)).toEqual({ tags: "${order.tags}", n: 1 });
});

test("a list that the caller gives is declared with what it holds", () => {
  const made = assign(recipe(step(`curl https://a.example.com/x --json '{"sizes": [1, 2]}'`)), 0, "body sizes", { kind: "input", name: "sizes" });
  expect(toDocument(made).argSchema.properties).toEqual({ sizes: { type: "array", items: { type: "integer" } } });
});

test("a step can be renamed, and slots follow", () => {
  const made = assign(recipe(answered("https://a.example.com/x", { id: 1 }), step("https://a.example.com/y", "parcel")), 1, "path 0", { kind: "step", step: "order", path: ["id"] });
  const calls = toDocument(changeStep(made, 0, (one) => ({ ...one, name: "buy" }))).impl.calls as Record<string, unknown>[];
  expect(calls[0]?.name).toBe("buy");
  expect(calls[1]?.urlTemplate).toBe("https://a.example.com/${buy.id}");
});

test("curl's -u becomes a name and a password by name", () => {
  const { impl } = toDocument(recipe(step("curl -u ada:pw https://a.example.com/x")));
  expect(impl.auth).toEqual({ type: "basic", username: "ada", password: "${secret:PASSWORD}" });
  expect(JSON.stringify(impl)).not.toContain("pw\"");
});

test("credentials are declared with secrets by name, and replace a header that they write", () => {
  const pasted = recipe(step("curl -H 'Authorization: Bearer x' -H 'X-A: 1' https://a.example.com/x"));
  const { impl } = toDocument(changeRun(pasted, 0, { auth: { type: "bearer", values: { token: "SHOP" } } }));
  expect(impl.auth).toEqual({ type: "bearer", token: "${secret:SHOP}" });
  expect(impl.headers).toEqual({ "X-A": "1" });
});

test("every type of credentials has a form, whose fields have labels", () => {
  for (const type of AUTH_TYPES) {
    for (const field of fieldsOf({ type, values: {} })) expect(labelOf({ type, values: {} }, field.key)).not.toContain("recipe.auth");
  }
});

test("a form of credentials writes what differs from the default", () => {
  expect(toDeclaration({ type: "api_key", values: { key: "K", where: "query", query: "appid" } })).toEqual({ type: "api_key", key: "${secret:K}", query: "appid" });
  expect(toDeclaration({ type: "hmac", values: { key: "K", encoding: "base64" } })).toEqual({
    type: "hmac", key: "${secret:K}", string: "${timestamp}.${body}", headers: { "X-Timestamp": "${timestamp}", "X-Signature": "${signature}" }, encoding: "base64",
  });
  expect(toDeclaration({ type: "oauth2_client", values: { token_url: "https://id.example.com/t", client_id: "c", client_secret: "S", scopes: "a b" } })).toEqual({
    type: "oauth2", grant: "client_credentials", token_url: "https://id.example.com/t", client_id: "c", client_secret: "${secret:S}", scopes: ["a", "b"],
  });
  expect(toDeclaration({ type: "http_signature", values: { key: "K", key_id: "k", nonce: true, expires_seconds: "60" } })).toEqual({
    type: "http_signature", key: "${secret:K}", key_id: "k", algorithm: "ed25519", nonce: true, expires_seconds: 60,
  });
});

test("what credentials lack is named", () => {
  const made = changeRun(recipe(step("https://a.example.com/x")), 0, { auth: { type: "basic", values: { username: "", password: "no name" } } });
  expect(problemsOf(made)).toEqual(["first: Name is needed.", "first: Secret with the password: write the name of a secret, with letters, digits and _."]);
});

test("with pages, the items of one are what is kept of and handed on", () => {
  const paged = answered("https://a.example.com/list?page=1", { items: [{ id: 1 }], next: "n" });
  const made = changeRun(recipe(paged), 0, { pages: { ...ONE_PAGE, type: "cursor", parameter: "after", next: ["next"], items: ["items"], most: "3" } });
  expect(toDocument(made).impl.pagination).toEqual({ type: "cursor", parameter: "after", next: "$.next", items: "$.items", pages: 3 });
  expect(toDocument(made).outputSchema).toEqual({ type: "array" });
  expect(outputsBefore(made, 1).map((one) => one.path.join("."))).toEqual(["", "0", "0.id"]);
});

test("parts are added and removed by hand", () => {
  const added = addPart(addPart(recipe(step("https://a.example.com/x")), 0, "header", "Accept", "text/csv"), 0, "body", "count", "3");
  const { impl } = toDocument(added);
  expect(impl).toMatchObject({ method: "POST", headers: { Accept: "text/csv", "Content-Type": "application/json" } });
  expect(JSON.parse(impl.bodyTemplate as string)).toEqual({ count: 3 });
  const one = added.steps[0] as Step;
  const without = KINDS.http.remove(one, one.parts.find((part) => part.label === "count") as Part);
  expect(JSON.parse(toDocument(recipe(without as Step)).impl.bodyTemplate as string)).toEqual({});
});

test("an output of one step goes into a slot of the next", () => {
  const order = { ...step("https://shop.example.com/orders", "order"), answer: { kind: "json" as const, value: { parcel: { id: 7, route: [] } } } };
  const made = assign(recipe(order, step("https://shop.example.com/parcels/1", "parcel")), 1, "path 1", { kind: "step", step: "order", path: ["parcel", "id"] });
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
  expect(valuesIn(Array.from({ length: 10_000 }, (_, place) => place)).length).toBeLessThanOrEqual(500);
});

test("the parameters of a statement are what the caller gives", () => {
  expect(namesIn(`SELECT ':no', "a:b", x::date FROM t WHERE a = :city AND b IN (:ids) OR a = :city -- :not\n /* :nor */`)).toEqual(["city", "ids"]);
  const { impl, type } = queryDocument(recipe(), { database: " shop.sqlite ", statement: "SELECT 1", write: false, returns: "value" });
  expect([type, impl]).toEqual(["sql", { database: "shop.sqlite", statement: "SELECT 1", returns: "value" }]);
});
