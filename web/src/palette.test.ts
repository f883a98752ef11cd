import userEvent from "@testing-library/user-event";
import { formOf } from "./palette-fields";
import { paletteTexts } from "./palette-messages";
import "./palette";

const TOOL = { slug: "readfile", version: "v1", bundleID: "b", description: "Read a file", isEnabled: true, effectiveEnabled: true, disabledReason: "", argSchema: { properties: { path: { type: "string" } }, required: ["path"] } };

function answers(found: unknown[], asked: string[] = []) {
  globalThis.CSSStyleSheet.prototype.replaceSync ??= () => undefined;
  vi.stubGlobal("fetch", async (url: URL, given: RequestInit) => {
    asked.push(`${given.method} ${url.pathname}`);
    const body = url.pathname.endsWith("/invoke") ? { ok: true, value: "<b>text</b>", intents: [], meta: {} } : url.pathname === "/ui/session" ? { csrf: "" } : { tools: found };
    return new Response(JSON.stringify(body), { status: 200 });
  });
  Element.prototype.scrollIntoView ??= () => undefined;
  document.body.innerHTML = "";
  const palette = document.createElement("toolcrib-palette");
  document.body.append(palette);
  return { root: palette.shadowRoot as ShadowRoot, palette, asked };
}

test("a typed slug finds the tool, calls it, and inserts the result as text", async () => {
  const { root, palette, asked } = answers([TOOL]);
  const user = userEvent.setup();
  const inserted = new Promise<CustomEvent>((done) => palette.addEventListener("toolcrib-insert", (event) => done(event as CustomEvent)));
  const input = root.querySelector("input") as HTMLInputElement;
  await user.type(input, "+readfile");
  await vi.waitFor(() => expect(root.querySelectorAll("[role=option]").length).toBe(1));
  await user.type(input, "{Enter}");
  await user.type(root.querySelector("input[name=path]") as HTMLInputElement, "a.txt{Enter}");
  await vi.waitFor(() => expect(root.querySelector(".said")?.textContent).toBe("<b>text</b>"));
  await user.click([...root.querySelectorAll("button")].find((one) => one.textContent?.startsWith("Insert")) as HTMLElement);
  expect((await inserted).detail).toMatchObject({ tool: "readfile", arguments: { path: "a.txt" }, text: "<b>text</b>" });
  expect(asked.filter((one) => one.startsWith("POST"))).toEqual(["POST /tools/bundles/b/tools/readfile/version/v1/invoke"]);
});

test("an unknown slug gives an empty list and no call", async () => {
  const { root, asked } = answers([]);
  const user = userEvent.setup();
  await user.type(root.querySelector("input") as HTMLInputElement, "+nothing");
  await vi.waitFor(() => expect(asked.length).toBeGreaterThan(0));
  await user.type(root.querySelector("input") as HTMLInputElement, "{Enter}");
  expect(root.querySelectorAll("[role=option]").length).toBe(0);
  expect(asked.filter((one) => one.startsWith("POST"))).toEqual([]);
});

function form(schema: Record<string, unknown>) {
  const field = formOf(schema);
  document.body.replaceChildren(field.element);
  const at = (name: string) => document.querySelector(`[name="${name}"]`) as HTMLInputElement;
  const press = (text: string) => ([...document.querySelectorAll("button")].find((one) => (one.getAttribute("aria-label") ?? one.textContent) === text) as HTMLElement).click();
  const choose = (label: string, text: string) => {
    const select = document.querySelector(`select[aria-label="${label}"]`) as HTMLSelectElement;
    select.value = ([...select.options].find((one) => one.text === text) as HTMLOptionElement).value;
    select.dispatchEvent(new Event("change"));
  };
  return { field, at, press, choose };
}

test("fields give values of their types, and say what is missing", () => {
  const { field, at } = form({ properties: { n: { type: "integer" }, b: { type: "boolean", default: false }, c: { enum: ["x", 2] }, o: {} }, required: ["n"] });
  expect(field.read()).toMatchObject({ problem: "n is needed", at: at("n") });
  at("n").value = "3";
  at("b").checked = true;
  at("c").value = "1";
  at("o").value = '{"a": [1]}';
  expect(field.read()).toEqual({ value: { n: 3, b: true, c: 2, o: { a: [1] } } });
  at("o").value = "{";
  expect(field.read()).toMatchObject({ problem: "o is not valid JSON" });
  at("o").value = "";
  at("n").value = "three";
  expect(field.read()).toMatchObject({ problem: "n is not a number" });
});

test("nested objects and lists have fields, and no JSON", () => {
  const item = { type: "object", properties: { label: { type: "string" }, size: { type: "number" } }, required: ["label"] };
  const { field, at, press } = form({
    properties: { order: { type: "object", properties: { street: { type: "string" }, items: { type: "array", items: item } }, required: ["street", "items"] } },
    required: ["order"],
  });
  expect(document.querySelector("textarea")).toBeNull();
  at("street").value = "Main";
  press("Add an item to items");
  at("label").value = "a";
  press("Add an item to items");
  press("Remove items 2");
  expect(field.read()).toEqual({ value: { order: { street: "Main", items: [{ label: "a" }] } } });
});

test("a union is chosen by the titles of its kinds, and each has its fields", () => {
  const { field, at, choose } = form({
    properties: {
      shape: {
        oneOf: [
          { title: "Circle", type: "object", properties: { radius: { type: "number" } }, required: ["radius"] },
          { type: "object", properties: { kind: { const: "square" }, side: { type: "number" } }, required: ["kind", "side"] },
          { type: "string" },
          { type: "null" },
        ],
      },
    },
    required: ["shape"],
  });
  const select = document.querySelector("select") as HTMLSelectElement;
  expect([...select.options].map((one) => one.text)).toEqual(["Circle", "square", "Text", "Nothing"]);
  at("radius").value = "2.5";
  expect(field.read()).toEqual({ value: { shape: { radius: 2.5 } } });
  choose("shape: which kind?", "square");
  at("side").value = "3";
  expect(field.read()).toEqual({ value: { shape: { kind: "square", side: 3 } } });
  choose("shape: which kind?", "Nothing");
  expect(field.read()).toEqual({ value: { shape: null } });
});

test("a map has rows of name and value, and a name stands once", () => {
  const { field, at, press } = form({ properties: { labels: { type: "object", additionalProperties: { type: "integer" } } }, required: ["labels"] });
  press("Add Whole number");
  press("Add Whole number");
  at("Name 1").value = "a";
  at("Whole number 1").value = "1";
  at("Name 2").value = "a";
  at("Whole number 2").value = "2";
  expect(field.read()).toMatchObject({ problem: "a is there twice" });
  at("Name 2").value = "b";
  expect(field.read()).toEqual({ value: { labels: { a: 1, b: 2 } } });
});

test("a schema that refers to itself is opened level by level, and one that requires itself ends", () => {
  const node = { type: "object", properties: { name: { type: "string" }, next: { $ref: "#/$defs/node" } }, required: ["name"] };
  const { field, at, press } = form({ properties: { tree: { $ref: "#/$defs/node" } }, $defs: { node } });
  expect(field.read()).toEqual({ value: {} });
  press("Add tree");
  at("name").value = "root";
  expect(field.read()).toEqual({ value: { tree: { name: "root" } } });
  const endless = { type: "object", properties: Object.fromEntries([..."abcdefghij"].map((name) => [name, { $ref: "#/$defs/endless" }])), required: [..."abcdefghij"] };
  expect(() => formOf({ properties: { one: { $ref: "#/$defs/endless" } }, required: ["one"], $defs: { endless, loop: { allOf: [{ $ref: "#/$defs/loop" }] } } })).not.toThrow();
  expect(() => formOf({ properties: { one: { $ref: "#/$defs/loop" } }, $defs: { loop: { allOf: [{ $ref: "#/$defs/loop" }, { $ref: "#/$defs/loop" }] } } })).not.toThrow();
});

test("a schema with too many fields, and levels that are too deep, are filled in as JSON", () => {
  const wide = form({ properties: Object.fromEntries(Array.from({ length: 1_500 }, (_, place) => [`f${place}`, {}])) });
  expect(document.querySelectorAll("input, textarea").length).toBe(1);
  expect(document.body.textContent).toContain("too many arguments");
  (document.querySelector("textarea") as HTMLTextAreaElement).value = '{"f7": 1}';
  expect(wide.field.read()).toEqual({ value: { f7: 1 } });
  const deep = Array.from({ length: 25 }).reduce<Record<string, unknown>>((inner, _, place) => ({ type: "object", properties: { [`l${place}`]: inner }, required: [`l${place}`] }), { type: "string" });
  form(deep);
  expect(document.querySelectorAll("textarea").length).toBe(1);
});

test("what may be null and may be left out is a plain field", () => {
  const { field, at } = form({ properties: { note: { anyOf: [{ type: "string" }, { type: "null" }], default: null, description: "A note" } } });
  expect(document.querySelector("select")).toBeNull();
  expect(field.read()).toEqual({ value: {} });
  at("note").value = "x";
  expect(field.read()).toEqual({ value: { note: "x" } });
});

test("a call that needs confirmation shows what would run, and runs once it is confirmed", async () => {
  const sent: unknown[] = [];
  const { root } = answers([TOOL]);
  const found = globalThis.fetch;
  vi.stubGlobal("fetch", async (url: URL, given: RequestInit) => {
    if (!url.pathname.endsWith("/invoke")) return found(url as never, given);
    const body = JSON.parse(String(given.body)) as { confirmation?: string };
    sent.push(body);
    const question = { ok: false, error: { type: "CONFIRMATION_REQUIRED", message: "it writes; run crib", details: { confirmation: "once", reason: "it writes" } } };
    return new Response(JSON.stringify(body.confirmation ? { ok: true, value: "done" } : question), { status: body.confirmation ? 200 : 409 });
  });
  const user = userEvent.setup();
  const press = async (text: string) => user.click([...root.querySelectorAll("button")].find((one) => one.textContent === text) as HTMLElement);
  await user.type(root.querySelector("input") as HTMLInputElement, "+readfile");
  await vi.waitFor(() => expect(root.querySelectorAll("[role=option]").length).toBe(1));
  await user.type(root.querySelector("input") as HTMLInputElement, "{Enter}");
  await user.type(root.querySelector("input[name=path]") as HTMLInputElement, "a.txt{Enter}");
  await vi.waitFor(() => expect(root.querySelector("[role=alertdialog]")?.textContent).toContain("readfile@v1"));
  expect(root.querySelector("[role=alertdialog]")?.textContent).toContain('"path": "a.txt"');
  expect(root.querySelector("[role=alertdialog]")?.textContent).not.toContain("crib");
  await press("Do not run it");
  expect(sent).toEqual([{ args: { path: "a.txt" } }]);
  await press("Call");
  await vi.waitFor(() => expect(root.querySelector("[role=alertdialog]")).not.toBeNull());
  await press("Run it once");
  await vi.waitFor(() => expect(root.querySelector(".said")?.textContent).toBe("done"));
  expect(sent.at(-1)).toEqual({ args: { path: "a.txt" }, confirmation: "once" });
});

test("a page replaces texts by their ids", async () => {
  const { root, palette } = answers([TOOL]);
  palette.setAttribute("texts", JSON.stringify({ "palette.label": "Werkzeug", "palette.call": "Aufrufen", "palette.close": 7 }));
  expect(root.querySelector("input")?.getAttribute("aria-label")).toBe("Werkzeug");
  const user = userEvent.setup();
  await user.type(root.querySelector("input") as HTMLInputElement, "+readfile");
  await vi.waitFor(() => expect(root.querySelectorAll("[role=option]").length).toBe(1));
  await user.type(root.querySelector("input") as HTMLInputElement, "{Enter}");
  expect([...root.querySelectorAll("form button")].map((one) => one.textContent)).toEqual(["Aufrufen", paletteTexts["palette.close"]]);
  palette.setAttribute("texts", "no JSON");
  expect(root.querySelector("input")?.getAttribute("aria-label")).toBe(paletteTexts["palette.label"]);
});
