// What a part of a JSON Schema is called, and what is wrong with a value, in the words of the page.
import { type MessageId, t, word } from "../messages";

export type Schema = Record<string, unknown>;

// Options of a union that are named; a schema with more of them is written as JSON.
const MAX_NAMED = 3;
const MAX_DEPTH = 8;

export function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// The part of a schema that a pointer such as #/properties/a leads to, through references of the same document.
export function partAt(root: Schema, pointer: string): unknown {
  let found: unknown = root;
  for (const step of stepsOf(pointer)) {
    if (!isSchema(found) && !Array.isArray(found)) return undefined;
    const next: unknown = (found as Schema)[step];
    found = step === "$ref" && typeof next === "string" ? partAt(root, next) : next;
  }
  return found;
}

export function stepsOf(pointer: string): string[] {
  return pointer.replace(/^#/, "").split("/").slice(1).map((step) => decoded(step).replaceAll("~1", "/").replaceAll("~0", "~"));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Where a schema holds further schemas: by name, in a list, or one.
const MAPS = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);
const LISTS = new Set(["allOf", "prefixItems"]);
const UNIONS = new Set(["anyOf", "oneOf"]);
const SINGLE = new Set(["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"]);

// The schema as a form takes it best: every option of a union has a title, so that a person chooses by a word and never by a number,
// a value that cannot be another one cannot be changed, a value of any or of several types is a union of them, and a field says
// whether it is required and what its default is.
export function forForm(root: Schema): Schema {
  return within(root, root) as Schema;
}

function within(part: unknown, root: Schema): unknown {
  if (!isSchema(part)) return part;
  const made: Schema = "const" in part ? { readOnly: true } : {};
  for (const [key, value] of Object.entries(part)) {
    if (key === "properties" && isSchema(value)) made[key] = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, field(one, root, Array.isArray(part.required) && part.required.includes(name))]));
    else if (MAPS.has(key) && isSchema(value)) made[key] = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, within(one, root)]));
    else if (LISTS.has(key) && Array.isArray(value)) made[key] = value.map((one) => within(one, root));
    else if (UNIONS.has(key) && Array.isArray(value)) made[key] = withTitles(value, root).map((one) => within(one, root));
    else made[key] = SINGLE.has(key) ? within(value, root) : value;
  }
  return made;
}

const ANY = ["string", "number", "boolean", "object", "array"];
const MAX_DEFAULT = 200;
// Keywords that give a form something to show for a value without one type.
const SHAPES = ["$ref", "const", "enum", "anyOf", "oneOf", "allOf", "properties", "items"];

function field(part: unknown, root: Schema, isRequired: boolean): unknown {
  const given = part === true ? {} : part;
  if (!isSchema(given)) return part;
  const made = within(given, root) as Schema;
  const several = Array.isArray(given.type) ? given.type.map(String) : [];
  const types = given.type === undefined && !SHAPES.some((key) => key in given) ? ANY : several.filter((type) => type !== "null").length > 1 ? several : [];
  if (types.length) {
    made.anyOf = types.map((type) => ({ type, title: word("form.type", type), ...(type === "object" && { additionalProperties: true }), ...(type === "array" && { items: { anyOf: ANY.slice(0, 3).map((one) => ({ type: one, title: word("form.type", one) })) } }) }));
    delete made.type;
  }
  const notes = [given.description, isRequired && t("form.isRequired"), "default" in given && t("form.default", { value: shown(given.default).slice(0, MAX_DEFAULT) })];
  const description = notes.filter(Boolean).join(" ");
  if (!description) return made;
  // Of a union a form shows the description of the chosen option alone.
  return types.length ? { ...made, anyOf: (made.anyOf as Schema[]).map((option) => ({ ...option, description })) } : { ...made, description };
}

function withTitles(options: unknown[], root: Schema): unknown[] {
  const names = options.map((option) => nameOf(option, root));
  return options.map((option, place) => {
    if (!isSchema(option)) return option;
    const name = names[place] as string;
    const isShared = names.filter((one) => one === name).length > 1;
    const number = names.slice(0, place + 1).filter((one) => one === name).length;
    return { ...option, title: isShared ? t("form.option.same", { name, number }) : name };
  });
}

// A word for a schema: its title, the value that sets it apart, the name of what it refers to, or its type.
export function nameOf(option: unknown, root: Schema, depth = 0): string {
  if (!isSchema(option) || depth > MAX_DEPTH) return t("form.type.any");
  if (typeof option.title === "string" && option.title) return option.title;
  if (typeof option.$ref === "string") {
    const target = partAt(root, option.$ref);
    const title = isSchema(target) && typeof target.title === "string" ? target.title : "";
    return title || (stepsOf(option.$ref).at(-1) ?? "") || nameOf(target, root, depth + 1);
  }
  if ("const" in option) return shown(option.const);
  if (Array.isArray(option.enum)) return listed(option.enum.map(shown));
  const properties = isSchema(option.properties) ? option.properties : {};
  const mark = Object.values(properties).find((value) => isSchema(value) && ("const" in value || (Array.isArray(value.enum) && value.enum.length === 1)));
  if (isSchema(mark)) return shown("const" in mark ? mark.const : (mark.enum as unknown[])[0]);
  const union = option.anyOf ?? option.oneOf;
  if (Array.isArray(union)) return listed(union.map((one) => nameOf(one, root, depth + 1)));
  if (option.type === "array" && isSchema(option.items)) return t("form.type.listOf", { items: nameOf(option.items, root, depth + 1) });
  const fields = Object.keys(properties);
  if (fields.length) return t("form.type.objectOf", { fields: listed(fields) });
  if (Array.isArray(option.type)) return listed(option.type.map((type) => word("form.type", String(type))));
  return typeof option.type === "string" ? word("form.type", option.type) : t("form.type.any");
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function listed(names: string[]): string {
  return names.length > MAX_NAMED ? [...names.slice(0, MAX_NAMED), "…"].join(", ") : names.join(", ");
}

// What the validator found: where in the value, where in the schema.
export interface Finding {
  keyword: string;
  keywordLocation: string;
  instanceLocation: string;
  error: string;
}
export interface Complaint {
  keyword: string;
  path: string[];
  message: string;
}

// Keywords that only say that something below them is wrong, which has a finding of its own.
const CARRIERS = new Set([
  ...["$ref", "$dynamicRef", "$recursiveRef", "allOf", "properties", "patternProperties", "items", "prefixItems", "additionalItems"],
  ...["if", "then", "else", "dependentSchemas", "unevaluatedItems", "false"],
]);
const SENTENCES: Record<string, MessageId> = {
  minLength: "form.minLength", maxLength: "form.maxLength", minimum: "form.minimum", maximum: "form.maximum",
  exclusiveMinimum: "form.exclusiveMinimum", exclusiveMaximum: "form.exclusiveMaximum", multipleOf: "form.multipleOf",
  minItems: "form.minItems", maxItems: "form.maxItems", minProperties: "form.minProperties", maxProperties: "form.maxProperties",
};

export function complaintsOf(findings: readonly Finding[], schema: Schema): Complaint[] {
  return ofBestBranches(findings).flatMap((finding) => complaintOf(finding, schema));
}

function complaintOf(finding: Finding, schema: Schema): Complaint[] {
  const { keyword } = finding;
  const path = stepsOf(finding.instanceLocation);
  const limit = partAt(schema, finding.keywordLocation);
  const say = (message: string, below: string[] = []) => [{ keyword, path: [...path, ...below], message }];
  if (keyword === "additionalProperties" || keyword === "unevaluatedProperties") {
    const name = quotedIn(finding.error);
    return limit === false && name !== undefined ? say(t("form.unknown", { name }), [name]) : [];
  }
  if (CARRIERS.has(keyword)) return [];
  if (keyword === "required" || keyword === "dependentRequired" || keyword === "dependencies") {
    const missing = quotedIn(finding.error);
    return say(t("form.required"), missing === undefined ? [] : [missing]);
  }
  const sentence = SENTENCES[keyword];
  if (sentence && typeof limit === "number") return say(t(sentence, { limit, count: limit }));
  switch (keyword) {
    case "type":
      return say(t("form.type", { type: (Array.isArray(limit) ? limit : [limit]).map((one) => word("form.type", String(one))).join(", ") }));
    case "enum":
      return say(t("form.enum", { values: (Array.isArray(limit) ? limit : []).slice(0, 20).map(shown).join(", ") }));
    case "const":
      return say(t("form.const", { value: shown(limit) }));
    case "pattern":
      return say(t("form.pattern", { pattern: String(limit) }));
    case "format":
      return say(t("form.format", { format: word("form.format", String(limit)) }));
    case "uniqueItems":
      return say(t("form.uniqueItems"));
    default:
      return say(t("form.wrong"));
  }
}

// The name that the validator puts in quotes, which its findings have nowhere else; of two the last.
function quotedIn(text: string): string | undefined {
  return /"([^"]*)"[^"]*$/.exec(text)?.[1];
}

// Of a union whose options all refuse a value, the findings of the option that was probably meant; if none stands out, that it fits
// none of them. The findings of the others would ask for what nobody wants.
function ofBestBranches(findings: readonly Finding[]): Finding[] {
  let left = [...findings];
  // The outermost union first, so that what is dropped with an option takes its unions along.
  const unions = left.filter((one) => one.keyword === "anyOf" || one.keyword === "oneOf").sort((one, other) => one.keywordLocation.length - other.keywordLocation.length);
  for (const union of unions) {
    if (!left.includes(union)) continue;
    const start = `${union.keywordLocation}/`;
    const within = left.filter((one) => one.keywordLocation.startsWith(start) && one.instanceLocation.startsWith(union.instanceLocation));
    const branches = new Map<string, Finding[]>();
    for (const one of within) {
      const branch = one.keywordLocation.slice(start.length).split("/")[0] as string;
      branches.set(branch, [...(branches.get(branch) ?? []), one]);
    }
    const meant = [...branches.values()].filter((branch) => !branch.some((one) => isAnother(one, union))).sort((one, other) => one.length - other.length)[0];
    const dropped = new Set<Finding>(within);
    if (meant) {
      for (const one of meant) dropped.delete(one);
      dropped.add(union);
    }
    left = left.filter((one) => !dropped.has(one));
  }
  return left;
}

// Whether a finding says that another option was meant: the type, or the value of a field that sets options apart.
function isAnother(finding: Finding, union: Finding): boolean {
  const depth = stepsOf(finding.instanceLocation).length - stepsOf(union.instanceLocation).length;
  return (finding.keyword === "type" && depth === 0) || ((finding.keyword === "const" || finding.keyword === "enum") && depth <= 1);
}
