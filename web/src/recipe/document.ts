// The document of a tool that a recipe describes.
import { t } from "../messages";
import { at, type Input, type Keep, type Part, type Path, type Recipe, type Step } from "./model";

export interface ToolDocument {
  schemaVersion: string;
  displayName: string;
  description: string;
  type: "http";
  isEnabled: boolean;
  argSchema: Record<string, unknown>;
  outputSchema: Record<string, unknown>;
  impl: Record<string, unknown>;
  tags: string[];
}

export function toDocument(recipe: Recipe): ToolDocument {
  const calls = recipe.steps.map(toCall);
  const [first] = calls;
  const { name: _, ...only } = first ?? { name: "" };
  return {
    schemaVersion: "toolcrib-1",
    displayName: recipe.title.trim(),
    description: recipe.description.trim(),
    type: "http",
    isEnabled: true,
    argSchema: {
      type: "object",
      properties: Object.fromEntries(recipe.inputs.map((input) => [input.name, schemaOf(input)])),
      required: recipe.inputs.filter((input) => input.required).map((input) => input.name),
      additionalProperties: false,
    },
    outputSchema: outputSchema(recipe.steps.at(-1)),
    impl: calls.length > 1 ? { calls } : only,
    tags: [],
  };
}

function schemaOf(input: Input): Record<string, unknown> {
  const described = input.description.trim() ? { description: input.description.trim() } : {};
  return { type: input.type, ...described, ...(input.choices.length > 0 && { enum: input.choices }) };
}

function toCall(step: Step): Record<string, unknown> & { name: string } {
  const of = (place: Part["place"]) => step.parts.filter((part) => part.place === place);
  const path = of("path").map((part) => (part.source.kind === "fixed" ? encodeURIComponent(String(part.value ?? "")) : slot(part)));
  const query = Object.fromEntries(of("query").map((part) => [part.label, slot(part)]));
  const headers = Object.fromEntries(of("header").map((part) => [part.label, slot(part)]));
  const body = bodyOf(step);
  const isText = step.answer?.kind === "text";
  const extract = expressionOf(step.keep);
  return {
    name: step.name,
    method: step.method,
    urlTemplate: `${step.origin}/${path.join("/")}`,
    ...(Object.keys(query).length > 0 && { query }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(body !== null && { bodyTemplate: body }),
    ...(isText && { responseEncoding: "text" }),
    ...(extract && { extractExpr: extract }),
  };
}

// A value as a template writes it: fixed text with its own slots taken literally, or a slot.
function slot(part: Part): string {
  const { source } = part;
  if (source.kind === "fixed") return literal(String(part.value ?? ""));
  const inside = source.kind === "step" ? `${source.step}${inSlot(source.path)}` : source.name;
  // What stood before a key, such as "Bearer ", stays.
  const scheme = part.place === "header" && source.kind === "secret" ? (/^(Bearer|Basic|Token|token) /.exec(String(part.value))?.[0] ?? "") : "";
  return `${scheme}\${${inside}}`;
}

function literal(text: string): string {
  return text.replaceAll("${", () => "$${");
}

function inSlot(path: Path): string {
  return path.map((word) => (typeof word === "number" ? `[${word}]` : `.${word}`)).join("");
}

function bodyOf(step: Step): string | null {
  const { body } = step;
  if (body.kind === "none") return null;
  if (body.kind === "text") return literal(body.text);
  const parts = step.parts.filter((part) => part.place === "body");
  if (body.kind === "form") return parts.map((part) => `${encodeURIComponent(part.label)}=${part.source.kind === "fixed" ? encodeURIComponent(String(part.value ?? "")) : slot(part)}`).join("&");
  let filled = structuredClone(body.example);
  for (const part of parts) if (part.at && part.source.kind !== "fixed") filled = put(filled, part.at, slot(part));
  for (const part of parts) if (part.at && part.source.kind === "fixed" && typeof part.value === "string") filled = put(filled, part.at, literal(part.value));
  return JSON.stringify(filled, null, 2);
}

function put(value: unknown, path: Path, what: unknown): unknown {
  if (path.length === 0) return what;
  const holder = at(value, path.slice(0, -1)) as Record<string | number, unknown>;
  holder[path.at(-1) as string | number] = what;
  return value;
}

export function expressionOf(keep: Keep): string {
  if (keep.kind === "all") return "";
  if (keep.kind === "element") return `<${keep.name}(?:\\s[^>]*)?>([^<]*)</${keep.name}>`;
  return `$${keep.path.map((word) => (word === "*" ? "[*]" : typeof word === "number" ? `[${word}]` : /^[A-Za-z_]\w*$/.test(word) ? `.${word}` : `['${word.replace(/[\\']/g, "\\$&")}']`)).join("")}`;
}

// What a kept path gives in an example: with "*" a list.
export function keptOf(value: unknown, path: Path): unknown {
  const star = path.indexOf("*");
  if (star < 0) return at(value, path);
  const list = at(value, path.slice(0, star));
  return Array.isArray(list) ? list.map((one) => keptOf(one, path.slice(star + 1))) : undefined;
}

function outputSchema(step: Step | undefined): Record<string, unknown> {
  if (!step?.answer) return {};
  if (step.answer.kind === "text") return { type: "string" };
  const kept = step.keep.kind === "path" ? keptOf(step.answer.value, step.keep.path) : step.answer.value;
  // One example says what kind of value it is, and no more: its fields may be missing in the next answer.
  if (Array.isArray(kept)) return step.keep.kind === "path" && step.keep.path.includes("*") ? {} : { type: "array" };
  if (kept === null || kept === undefined) return {};
  return { type: typeof kept === "object" ? "object" : typeof kept };
}

// Why a recipe cannot be tried or saved yet; empty if it can.
export function problemsOf(recipe: Recipe): string[] {
  const problems: string[] = [];
  if (recipe.steps.length === 0) problems.push(t("recipe.problem.request"));
  if (!recipe.title.trim()) problems.push(t("recipe.problem.name"));
  if (!recipe.description.trim()) problems.push(t("recipe.problem.description"));
  return problems;
}
