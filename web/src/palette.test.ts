import userEvent from "@testing-library/user-event";
import { fieldsOf, readFields } from "./palette-fields";
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

test("fields give values of their types, and say what is missing", () => {
  const fields = fieldsOf({ properties: { n: { type: "integer" }, b: { type: "boolean" }, c: { enum: ["x", "y"] }, o: { type: "object" } }, required: ["n"] });
  expect(readFields(fields)).toEqual({ problem: "n is needed" });
  const [n, b, c, o] = fields.map((field) => field.control) as [HTMLInputElement, HTMLInputElement, HTMLSelectElement, HTMLTextAreaElement];
  n.value = "3";
  b.checked = true;
  c.value = "y";
  o.value = '{"a": [1]}';
  expect(readFields(fields)).toEqual({ values: { n: 3, b: true, c: "y", o: { a: [1] } } });
  o.value = "{";
  expect(readFields(fields)).toEqual({ problem: "o is not valid JSON" });
});
