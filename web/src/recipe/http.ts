// Steps that are HTTP requests: their parts, what fits into them, and the description that the server takes.
import { type MessageId, t } from "../messages";
import { type Auth, headersOf, NO_AUTH, problemsOfAuth, toDeclaration } from "./auth";
import type { StepKind } from "./kinds";
import { expressionOf } from "./keep";
import { at, changeStep, isInside, type Json, openParts, type Part, type Path, type Recipe, type Step, withoutUnused } from "./model";
import { acceptsLike, formatOf, SINGLE, typedValue } from "./value-types";

export const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;
export type Method = (typeof METHODS)[number];
export const PLACES = ["path", "query", "header", "body"] as const;
export type Place = (typeof PLACES)[number];
// `text` is how a stored tool writes its JSON, which stays as long as it says the same. "written" is a template of a stored tool that is neither JSON nor a form; it is kept as it is.
export type Body = { kind: "none" } | { kind: "json"; example: Json; text?: string } | { kind: "form" } | { kind: "text"; text: string } | { kind: "written"; text: string };

// How further pages are asked for. `next` and `items` are places in one page.
export interface Pages {
  type: "none" | "page" | "offset" | "cursor" | "link" | "url";
  parameter: string;
  in: "query" | "body";
  next: Path | null;
  items: Path;
  first: string;
  size: string;
  most: string;
  truncate: boolean;
}

export const ONE_PAGE: Pages = { type: "none", parameter: "", in: "query", next: null, items: [], first: "", size: "", most: "", truncate: false };

export interface HttpRun {
  kind: "http";
  method: Method;
  origin: string;
  body: Body;
  auth: Auth;
  pages: Pages;
  // What the description of a stored request says besides; it is kept as it is.
  kept?: Record<string, unknown>;
}

export const HTTP: StepKind = {
  places: PLACES,
  summary: ({ run }) => `${run.method} ${run.origin}`,
  // An address, a header and a form carry text; JSON keeps the type of its example.
  accepts: (_, part) => (part.at ? acceptsLike(part.value) : { types: SINGLE, format: formatOf(part.value) }),
  outcome,
  write,
  remove,
  problems: ({ run, name }) => [
    ...problemsOfAuth(run.auth).map((problem) => `${name}: ${problem}`),
    ...problemsOfPages(run.pages).map((problem) => `${name}: ${problem}`),
  ],
};

export function newRequest(name: string, run: Partial<HttpRun> & { origin: string }, parts: Part[] = []): Step {
  const body: Body = run.body ?? { kind: "none" };
  return { id: name, name, parts, answer: null, keep: { kind: "all" }, run: { kind: "http", method: "GET", auth: NO_AUTH, pages: ONE_PAGE, ...run, body } };
}

// What a request gives: its answer, or with further pages the items of all of them, of which the example has those of one.
function outcome(step: Step): unknown {
  if (step.answer?.kind !== "json") return step.answer?.text;
  return step.run.pages.type === "none" ? step.answer.value : at(step.answer.value, step.run.pages.items);
}

export const needsParameter = (type: Pages["type"]) => type === "page" || type === "offset" || type === "cursor";
export const needsNext = (type: Pages["type"]) => type === "cursor" || type === "url";

function problemsOfPages(pages: Pages): string[] {
  const problems: string[] = [];
  if (needsParameter(pages.type) && !pages.parameter.trim()) problems.push(t("recipe.pages.needsParameter"));
  if (needsNext(pages.type) && !pages.next) problems.push(t("recipe.pages.needsNext"));
  return problems;
}

function write(step: Step, slot: (part: Part) => string): Record<string, unknown> {
  const { run } = step;
  const of = (place: Place) => step.parts.filter((part) => part.place === place);
  const path = of("path").map((part) => (part.source.kind === "fixed" ? encodeURIComponent(String(part.value ?? "")) : slot(part)));
  const query = Object.fromEntries(of("query").map((part) => [part.label, slot(part)]));
  const headers = Object.fromEntries(of("header").map((part) => [part.label, withScheme(part, slot(part))]));
  const body = bodyOf(step, run.body, slot);
  const auth = toDeclaration(run.auth);
  const pagination = writePages(run.pages);
  const extract = expressionOf(step.keep);
  const kept = run.kept ?? {};
  return {
    ...kept,
    method: run.method,
    urlTemplate: path.length > 0 ? `${run.origin}/${path.join("/")}` : run.origin,
    ...(Object.keys(query).length > 0 && { query: { ...(kept.query as object | undefined), ...query } }),
    ...(Object.keys(headers).length > 0 && { headers: { ...(kept.headers as object | undefined), ...headers } }),
    ...(body !== null && { bodyTemplate: body }),
    ...(auth && { auth }),
    ...(pagination && { pagination }),
    ...(step.answer?.kind === "text" && !("responseEncoding" in kept) && { responseEncoding: "text" }),
    ...(extract && { extractExpr: extract }),
  };
}

// What stood before a key, such as "Bearer ", stays.
function withScheme(part: Part, written: string): string {
  const scheme = part.source.kind === "secret" ? (/^(Bearer|Basic|Token|token) /.exec(String(part.value))?.[0] ?? "") : "";
  return scheme + written;
}

function bodyOf(step: Step, body: Body, slot: (part: Part) => string): string | null {
  if (body.kind === "none") return null;
  if (body.kind === "written") return body.text;
  if (body.kind === "text") return body.text.replaceAll("${", () => "$${");
  const parts = openParts(step).filter((part) => part.place === "body");
  if (body.kind === "form") return parts.map((part) => `${encodeURIComponent(part.label)}=${part.source.kind === "fixed" ? encodeURIComponent(String(part.value ?? "")) : slot(part)}`).join("&");
  const filled = structuredClone(body.example);
  // A list or object that stays is written by what stands in it.
  for (const part of parts) {
    const isWhole = part.source.kind === "fixed" && typeof part.value === "object" && part.value !== null;
    if (part.at && !isWhole) put(filled, part.at, part.source.kind === "fixed" && typeof part.value !== "string" ? part.value : slot(part));
  }
  const isUnchanged = body.text !== undefined && JSON.stringify(JSON.parse(body.text)) === JSON.stringify(filled);
  return isUnchanged ? (body.text as string) : JSON.stringify(filled, null, 2);
}

function put(value: Json, path: Path, what: Json): void {
  const holder = at(value, path.slice(0, -1)) as Record<string | number, unknown>;
  holder[path.at(-1) as string | number] = what;
}

export function writePages(pages: Pages): Record<string, unknown> | null {
  const { type, parameter, next, items, first, size, most, truncate } = pages;
  if (type === "none") return null;
  const whole = (text: string) => (/^\d+$/.test(text.trim()) ? Number(text) : null);
  return {
    type,
    ...(needsParameter(type) && { parameter: parameter.trim(), ...(pages.in === "body" && { in: "body" }) }),
    ...(needsNext(type) && next && { next: expressionOf({ kind: "path", path: next }) }),
    ...(items.length > 0 && { items: expressionOf({ kind: "path", path: items }) }),
    ...((type === "page" || type === "offset") && whole(first) !== null && { first: whole(first) }),
    ...(whole(size) !== null && { size: whole(size) }),
    ...(whole(most) !== null && { pages: whole(most) }),
    ...(truncate && { truncate }),
  };
}

// Change how a request runs; a header that its credentials write cannot stand beside them.
export function changeRun(recipe: Recipe, place: number, change: Partial<HttpRun>): Recipe {
  return withoutUnused(
    changeStep(recipe, place, (step) => {
      const run = { ...step.run, ...change };
      const written = new Set(headersOf(run.auth));
      return { ...step, run, parts: step.parts.filter((part) => part.place !== "header" || !written.has(part.label.toLowerCase())) };
    }),
  );
}

export function canAdd(step: Step, place: Place): boolean {
  const body = step.run.body.kind;
  return place !== "body" || (body !== "text" && body !== "written" && !(body === "json" && Array.isArray((step.run.body as { example: Json }).example)));
}

// Add a part by hand; the first one of the content makes it an object in JSON.
export function addPart(recipe: Recipe, place: number, where: Place, label: string, value: string): Recipe {
  return changeStep(recipe, place, (step) => {
    const { run } = step;
    const made: Part = { id: idFor(step, where), place: where, label: where === "path" ? "" : label, value, source: { kind: "fixed" } };
    if (where !== "body") return { ...step, parts: [...step.parts, made] };
    const body: Body = run.body.kind === "none" ? { kind: "json", example: {} } : run.body;
    if (body.kind !== "json") return { ...step, parts: [...step.parts, made] };
    const typed = typedValue(value);
    const example = { ...(body.example as Record<string, Json>), [label]: typed };
    const parts = [...withContentType(step.parts, "application/json"), { ...made, value: typed, at: [label] }];
    return { ...step, parts, run: { ...run, body: { kind: "json", example }, method: run.method === "GET" ? "POST" : run.method } };
  });
}

function remove(step: Step, gone: Part): Step | null {
  // An item of a list has its place by number; without it the others would move.
  if (typeof gone.at?.at(-1) === "number") return null;
  const parts = step.parts.filter((part) => part.id !== gone.id && !isInside(part, gone));
  const { body } = step.run;
  if (!gone.at || body.kind !== "json") return { ...step, parts };
  const example = structuredClone(body.example);
  delete (at(example, gone.at.slice(0, -1)) as Record<string, Json>)[gone.at.at(-1) as string];
  return { ...step, parts, run: { ...step.run, body: { kind: "json", example } } };
}

export function withContentType(parts: Part[], type: string): Part[] {
  if (parts.some((part) => part.place === "header" && part.label.toLowerCase() === "content-type")) return parts;
  return [...parts, { id: "header type", place: "header", label: "Content-Type", value: type, source: { kind: "fixed" } }];
}

function idFor(step: Step, place: Place): string {
  const taken = new Set(step.parts.map((part) => part.id));
  for (let number = step.parts.length; ; number++) if (!taken.has(`${place} ${number}`)) return `${place} ${number}`;
}

export function placeName(place: string): string {
  return t(`recipe.place.${place}` as MessageId);
}
