// Open a stored tool in the recipe builder: web requests, a question to a database, or a function of the host program. What the builder has no fields for is kept as it is written; a tool that
// would be another one afterwards is not opened at all.
import { type Auth, AUTH_FIELDS, type AuthField, type AuthType, type AuthValue, NO_AUTH, toDeclaration } from "./auth";
import { functionDocument, type Query, queryDocument, RETURNS, toDocument } from "./document";
import { type Body, type HttpRun, METHODS, type Method, newRequest, ONE_PAGE, type Pages, type Place, writePages } from "./http";
import { readExpression, readPath } from "./keep";
import { type Input, type InputType, type Json, type Part, type Path, type Recipe, type Source, type Step, type Stored, valuesIn } from "./model";

export type Plain = Record<string, unknown>;
// What is kept of a stored tool without a field, by its place in the document.
export type Opened = { recipe: Recipe; kept: string[] };
export type OpenedTool = ({ kind: "requests" } & Opened) | ({ kind: "query"; query: Query } & Opened) | ({ kind: "function"; functionKey: string } & Opened);

// What the server says of a version besides what a person wrote.
const OF_THE_SERVER = new Set([
  ...["toolID", "bundleID", "bundleSlug", "slug", "version", "source", "warnings", "isBuiltIn", "effectiveEnabled", "disabledReason"],
  ...["createdAt", "modifiedAt", "toggledAt", "lastCalledAt", "callCount", "match"],
]);
const USUAL_METHOD: Method = "GET";
const OF_A_RECIPE = ["displayName", "description", "type", "argSchema", "outputSchema", "impl"];
const OF_A_REQUEST = ["method", "urlTemplate", "query", "headers", "bodyTemplate", "auth", "pagination", "extractExpr"];

// The document of a stored version, as a person wrote it.
export function writtenOf(stored: Plain): Plain {
  return Object.fromEntries(Object.entries(stored).filter(([key]) => !OF_THE_SERVER.has(key)));
}

// What the builder opens a document as; null if it cannot hold all of it.
export function openTool(document: Plain): OpenedTool | null {
  if (document.type === "sql") return openQuery(document);
  if (document.type === "go") return openFunction(document);
  const opened = openDocument(document);
  return opened && { kind: "requests", ...opened };
}

function openQuery(document: Plain): OpenedTool | null {
  if (!isPlain(document.impl) || !isPlain(document.argSchema ?? {})) return null;
  const { database, statement, write = false, returns = "rows", ...kept } = document.impl;
  if (typeof database !== "string" || typeof statement !== "string" || typeof write !== "boolean" || !(RETURNS as readonly unknown[]).includes(returns)) return null;
  const query: Query = { database, statement, write, returns: returns as Query["returns"] };
  const recipe = recipeWithout(document, kept);
  const impl = { ...kept, database: database.trim(), statement: statement.trim(), ...(write && { write }), ...(returns !== "rows" && { returns }) };
  return isSame(queryDocument(recipe, query), { ...headSpelledOut(document), impl }) ? { kind: "query", query, recipe, kept: keptOf(recipe, document) } : null;
}

function openFunction(document: Plain): OpenedTool | null {
  if (!isPlain(document.impl) || !isPlain(document.argSchema ?? {})) return null;
  const { goFunc, ...kept } = document.impl;
  if (typeof goFunc !== "string") return null;
  const recipe = recipeWithout(document, kept);
  return isSame(functionDocument(recipe, goFunc), { ...headSpelledOut(document), impl: document.impl }) ? { kind: "function", functionKey: goFunc, recipe, kept: keptOf(recipe, document) } : null;
}

// The recipe of a document that has no steps; of how it runs, `impl` is what the builder has no field for.
function recipeWithout(document: Plain, impl: Plain): Recipe {
  return { ...headRecipe(document, Object.keys(impl).length > 0 ? impl : undefined), steps: [] };
}

// The recipe of a document of web requests; null if the builder cannot hold all of it.
export function openDocument(document: Plain): Opened | null {
  if (document.type !== "http" || !isPlain(document.impl) || !isPlain(document.argSchema ?? {})) return null;
  try {
    const recipe = recipeOf(document);
    return isSame(toDocument(recipe), spelledOut(document)) ? { recipe, kept: keptOf(recipe, document) } : null;
  } catch {
    return null;
  }
}

// The document with what is meant where it says nothing.
function spelledOut(document: Plain): Plain {
  const { calls, ...rest } = document.impl as Plain;
  const impl = Array.isArray(calls) ? { ...rest, calls: calls.map((call) => ({ method: USUAL_METHOD, ...call })) } : { method: USUAL_METHOD, ...rest };
  return { ...headSpelledOut(document), impl };
}

function headSpelledOut(document: Plain): Plain {
  const text = (value: unknown) => String(value ?? "").trim();
  const argSchema = { properties: {}, ...(document.argSchema as object | undefined) };
  return { ...document, displayName: text(document.displayName), description: text(document.description), argSchema, outputSchema: document.outputSchema ?? {} };
}

// Name, description and inputs of a document, and what it says besides.
function headRecipe(document: Plain, impl: Plain | undefined): Omit<Recipe, "steps" | "stored"> & { stored: Stored } {
  const { properties = {}, required = [], ...schema } = (document.argSchema ?? {}) as { properties?: Plain; required?: string[] } & Plain;
  return {
    title: String(document.displayName ?? ""),
    description: String(document.description ?? ""),
    inputs: Object.entries(properties).map(([name, one]) => inputOf(name, one, required.includes(name))),
    stored: {
      document: { ...without(document, OF_A_RECIPE), ...(impl !== undefined && { impl }) } as Stored["document"],
      argSchema: { ...schema, ...(isPlain(document.argSchema) && "required" in document.argSchema && { required: [] }) },
      outputSchema: (document.outputSchema ?? {}) as Plain,
      keep: undefined,
    },
  };
}

function recipeOf(document: Plain): Recipe {
  const impl = document.impl as Plain;
  const { calls, ...ofAll } = impl;
  const { inputs, stored, ...head } = headRecipe(document, calls === undefined ? undefined : ofAll);
  const list = Array.isArray(calls) ? (calls as Plain[]) : [impl];
  const names = list.map((call, place) => (typeof call.name === "string" && calls ? call.name : `request_${place + 1}`));
  const steps = list.map((call, place) => stepOf(call, names[place] as string, { inputs: inputs.map((input) => input.name), steps: names.slice(0, place) }));
  const written = JSON.stringify(impl);
  return {
    ...head,
    inputs: inputs.map((input) => (written.includes(`\${${input.name}`) ? input : { ...input, isFree: true })),
    steps,
    stored: { ...stored, keep: steps.at(-1)?.keep },
  };
}

const TYPES: unknown[] = ["string", "integer", "number", "boolean"] satisfies InputType[];

function inputOf(name: string, schema: unknown, required: boolean): Input {
  const { type, description = "", ...more } = (isPlain(schema) ? schema : {}) as Plain;
  const plain: Input = { name, type: "string", items: "string", description: String(description), required, choices: [] };
  if (type === "array" && isPlain(more.items) && TYPES.includes(more.items.type)) {
    const { items, ...others } = more as { items: Plain };
    const { type: held, ...ofItems } = items;
    return withMore({ ...plain, type: "array", items: held as InputType }, { ...others, ...(Object.keys(ofItems).length > 0 && { items: ofItems }) });
  }
  if (type === "string" && Array.isArray(more.enum) && more.enum.every((one) => typeof one === "string")) {
    const { enum: choices, ...others } = more as { enum: string[] };
    return withMore({ ...plain, choices }, others);
  }
  if (TYPES.includes(type)) return withMore({ ...plain, type: type as InputType }, more);
  return { ...plain, schema: without(isPlain(schema) ? schema : {}, ["description"]) };
}

function withMore(input: Input, kept: Plain): Input {
  return Object.keys(kept).length > 0 ? { ...input, kept } : input;
}

interface Known {
  inputs: string[];
  steps: string[];
}

function stepOf(call: Plain, name: string, known: Known): Step {
  const { origin, segments } = splitUrl(String(call.urlTemplate ?? ""));
  const path = segments.map((text, place) => partOf("path", `${place + 1}`, text, `path ${place}`, known));
  const query = textsOf(call.query);
  const headers = textsOf(call.headers);
  const body = bodyOf(call.bodyTemplate, known);
  const auth = isPlain(call.auth) ? authOf(call.auth) : NO_AUTH;
  const pages = isPlain(call.pagination) ? pagesOf(call.pagination) : ONE_PAGE;
  const kept: Plain = {
    ...without(call, [...OF_A_REQUEST, "name"]),
    ...(Object.keys(query.others).length > 0 && { query: query.others }),
    ...(Object.keys(headers.others).length > 0 && { headers: headers.others }),
    ...(auth === null && { auth: call.auth }),
    ...(pages === null && { pagination: call.pagination }),
  };
  const run: Partial<HttpRun> & { origin: string } = {
    origin,
    method: methodOf(call.method),
    body: body.body,
    auth: auth ?? NO_AUTH,
    pages: pages ?? ONE_PAGE,
    ...(Object.keys(kept).length > 0 && { kept }),
  };
  const parts = [
    ...path,
    ...query.texts.map(([label, text], place) => partOf("query", label, text, `query ${place}`, known)),
    ...headers.texts.map(([label, text], place) => partOf("header", label, text, `header ${place}`, known)),
    ...body.parts,
  ];
  return { ...newRequest(name, run, parts), keep: readExpression(String(call.extractExpr ?? "")) };
}

function methodOf(method: unknown = USUAL_METHOD): Method {
  if (!(METHODS as readonly unknown[]).includes(method)) throw new Error("a method that the builder does not have");
  return method as Method;
}

// The origin of an address, and its path cut at slashes that stand outside of slots. A query in it belongs to the last segment.
function splitUrl(url: string): { origin: string; segments: string[] } {
  const [origin = ""] = /^[a-z]+:\/\/(?:\$\{[^}]*\}|[^/])*/i.exec(url) ?? [];
  const rest = url.slice(origin.length + 1);
  if (!origin || url === origin) return { origin: url, segments: [] };
  return { origin, segments: rest.match(/(?:\$\{[^}]*\}|[^/])*(?:\/|$)/g)?.slice(0, segmentCount(rest)).map((word) => word.replace(/\/$/, "")) ?? [""] };
}

function segmentCount(path: string): number {
  return path.replace(/\$\{[^}]*\}/g, "").split("/").length;
}

// The entries of a map that are texts, and the others.
function textsOf(map: unknown): { texts: [string, string][]; others: Plain } {
  const entries = Object.entries((map ?? {}) as Plain);
  return {
    texts: entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    others: Object.fromEntries(entries.filter(([, value]) => typeof value !== "string")),
  };
}

const SLOT = /^\$\{([A-Za-z_]\w*)((?:\.[\p{L}_][\p{L}\p{Nd}_-]*|\[\d+\])*)\}$/u;
const SCHEME = /^(Bearer|Basic|Token|token) (?=\$\{)/;

function partOf(place: Place, label: string, text: string, id: string, known: Known): Part {
  const scheme = place === "header" ? (SCHEME.exec(text)?.[0] ?? "") : "";
  const source = sourceOf(text.slice(scheme.length), known);
  if (source.kind === "fixed") return fixedPart({ id, place, label, source, value: "" }, text);
  // Only before a secret does a scheme stay.
  if (scheme && source.kind !== "secret") return { id, place, label, value: null, source: { kind: "written", text } };
  return { id, place, label, value: scheme ? `${scheme}…` : null, source };
}

function fixedPart(part: Part, text: string): Part {
  const plain = text.replaceAll("$${", () => "${");
  if (part.place !== "path") return { ...part, value: plain };
  const value = decodeURIComponent(plain);
  return encodeURIComponent(value) === text ? { ...part, value } : { ...part, value, source: { kind: "written", text } };
}

// Where a template takes its value from: a slot alone, text without a slot, or what is kept as it is written.
function sourceOf(text: string, { inputs, steps }: Known): Source {
  if (!/(?<!\$)\$\{/.test(text)) return { kind: "fixed" };
  const [, name = "", rest = ""] = SLOT.exec(text) ?? [];
  if (steps.includes(name)) return { kind: "step", step: name, path: [...rest.matchAll(/\.([^.[]+)|\[(\d+)\]/g)].map(([, word, number]) => word ?? Number(number)) };
  if (!name || rest) return { kind: "written", text };
  return inputs.includes(name) ? { kind: "input", name } : { kind: "secret", name };
}

function bodyOf(template: unknown, known: Known): { body: Body; parts: Part[] } {
  if (typeof template !== "string") return { body: { kind: "none" }, parts: [] };
  const json = jsonOf(template);
  if (json !== undefined) return { body: { kind: "json", example: json, text: template }, parts: jsonParts(json, known) };
  const form = template.split("&").map((pair) => /^([^=&\s{}]+)=([^&]*)$/.exec(pair));
  if (form.every((pair) => pair !== null)) {
    const parts = form.map((pair, place) => formPart(pair[1] as string, pair[2] as string, `body ${place}`, known));
    return { body: { kind: "form" }, parts };
  }
  if (!/(?<!\$)\$\{/.test(template)) return { body: { kind: "text", text: template.replaceAll("$${", () => "${") }, parts: [] };
  return { body: { kind: "written", text: template }, parts: [] };
}

// A template that is JSON, with its slots between quotes.
function jsonOf(template: string): Json | undefined {
  try {
    const found = JSON.parse(template) as Json;
    return typeof found === "object" && found !== null ? found : undefined;
  } catch {
    return undefined;
  }
}

function jsonParts(example: Json, known: Known): Part[] {
  return valuesIn(example).slice(1).map(({ path, value }) => ({ ...jsonPart(value, known), id: `body ${path.join(".")}`, place: "body", label: path.join("."), at: path }));
}

function jsonPart(value: Json, known: Known): Pick<Part, "value" | "source"> {
  if (typeof value !== "string") return { value, source: { kind: "fixed" } };
  const source = sourceOf(value, known);
  return source.kind === "fixed" ? { value: value.replaceAll("$${", () => "${"), source } : { value: null, source };
}

function formPart(label: string, text: string, id: string, known: Known): Part {
  const made = partOf("body", decodeURIComponent(label), text, id, known);
  if (made.source.kind !== "fixed") return made;
  const value = decodeURIComponent(String(made.value));
  return encodeURIComponent(value) === text ? { ...made, value } : { ...made, source: { kind: "written", text } };
}

// The form of a declaration; null for one that the form would write otherwise.
function authOf(declaration: Plain): Auth | null {
  const type = (Object.keys(AUTH_FIELDS) as Exclude<AuthType, "none">[]).find((one) => isOf(one, declaration));
  if (!type) return null;
  const fields: AuthField[] = AUTH_FIELDS[type];
  const values = Object.fromEntries(fields.flatMap((field) => (field.key in declaration ? [[field.key, fieldValue(field, declaration[field.key])]] : [])));
  const auth: Auth = { type, values: { ...values, ...(type === "api_key" && { where: "query" in declaration ? "query" : "header" }) } };
  return isSame(toDeclaration(auth), declaration) ? auth : null;
}

const GRANTS: Record<string, string> = { oauth2_client: "client_credentials", oauth2_refresh: "refresh_token", oauth2_login: "authorization_code" };

function isOf(type: string, declaration: Plain): boolean {
  const grant = GRANTS[type];
  return grant ? declaration.type === "oauth2" && declaration.grant === grant : declaration.type === type;
}

function fieldValue({ kind }: AuthField, value: unknown): AuthValue {
  if (typeof value === "boolean") return value;
  if (kind === "secret") return /^\$\{secret:(\w+)\}$/.exec(String(value))?.[1] ?? "";
  if (kind === "words" && Array.isArray(value)) return value.join(" ");
  if (kind === "pairs" && isPlain(value)) return Object.entries(value).map(([name, one]) => ({ name, value: String(one) }));
  return String(value);
}

// The form of a declaration of pages; null for one that the form would write otherwise.
function pagesOf(declaration: Plain): Pages | null {
  const text = (value: unknown) => (value === undefined ? "" : String(value));
  const place = (value: unknown): Path | null => (typeof value === "string" ? readPath(value) : null);
  const pages: Pages = {
    type: declaration.type as Pages["type"],
    parameter: text(declaration.parameter),
    in: declaration.in === "body" ? "body" : "query",
    next: place(declaration.next),
    items: place(declaration.items) ?? [],
    first: text(declaration.first),
    size: text(declaration.size),
    most: text(declaration.pages),
    truncate: declaration.truncate === true,
  };
  return isSame(writePages(pages), declaration) ? pages : null;
}

// The places of a document that the builder keeps without a field.
function keptOf({ steps, inputs, stored }: Recipe, document: Plain): string[] {
  const isList = Array.isArray((document.impl as Plain).calls);
  const own = new Set(["schemaVersion", "isEnabled", "tags", "impl"]);
  return [
    ...Object.keys(stored?.document ?? {}).filter((key) => !own.has(key)),
    ...Object.keys((stored?.document.impl as Plain | undefined) ?? {}).map((key) => `impl.${key}`),
    ...Object.keys(stored?.argSchema ?? {}).filter((key) => !["type", "additionalProperties", "required"].includes(key)).map((key) => `argSchema.${key}`),
    ...inputs.flatMap((input) => (input.schema ? [input.name] : Object.keys(input.kept ?? {}).map((key) => `${input.name}.${key}`))),
    ...steps.flatMap((step, place) => {
      const where = isList ? `impl.calls[${place}]` : "impl";
      const parts = step.parts.filter((part) => part.source.kind === "written").map((part) => `${where}: ${part.source.kind === "written" ? part.source.text : ""}`);
      const more = Object.keys(step.run.kept ?? {}).map((key) => `${where}.${key}`);
      return [...more, ...parts, ...(step.run.body.kind === "written" ? [`${where}.bodyTemplate`] : []), ...(step.keep.kind === "written" ? [`${where}.extractExpr`] : [])];
    }),
  ];
}

function isPlain(value: unknown): value is Plain {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function without(map: Plain, keys: readonly string[]): Plain {
  return Object.fromEntries(Object.entries(map).filter(([key]) => !keys.includes(key)));
}

// Whether two documents say the same; the order of keys says nothing, nor that of the names of what is required.
export function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isPlain(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, key === "required" && Array.isArray(value[key]) ? [...value[key]].sort() : sorted(value[key])]));
}
