// The document of a tool that a recipe describes.
import { t } from "../messages";
import { keptOf } from "./keep";
import { KINDS } from "./kinds";
import { type Input, isStepName, type Part, type Path, type Recipe } from "./model";

export interface ToolDocument {
  schemaVersion: string;
  displayName: string;
  description: string;
  type: "http" | "go" | "sql";
  isEnabled: boolean;
  argSchema: Record<string, unknown>;
  outputSchema: Record<string, unknown>;
  impl: Record<string, unknown>;
  tags: string[];
}

export function toDocument(recipe: Recipe): ToolDocument {
  const names = new Map(recipe.steps.map((step) => [step.id, step.name]));
  const calls = recipe.steps.map((step) => ({ name: step.name, ...KINDS[step.run.kind].write(step, (part) => slot(part, names)) }));
  const { name: _, ...only } = calls[0] ?? { name: "" };
  return {
    ...headOf(recipe),
    type: "http",
    outputSchema: outputSchema(recipe),
    // A stored tool may have one call in a list, or say something for all of them.
    impl: calls.length > 1 || isList(recipe) ? { ...keptImpl(recipe), calls } : only,
  };
}

function isList({ stored }: Recipe): boolean {
  return stored !== undefined && "impl" in stored.document;
}

// A tool that is a function of the host program, by its key.
export function functionDocument(recipe: Recipe, key: string): ToolDocument {
  return { ...headOf(recipe), type: "go", outputSchema: recipe.stored?.outputSchema ?? {}, impl: { ...keptImpl(recipe), goFunc: key } };
}

// What a query gives: rows with a mark for more, the list alone, one row, or one value.
export const RETURNS = ["rows", "list", "row", "value"] as const;

export interface Query {
  database: string;
  statement: string;
  write: boolean;
  returns: (typeof RETURNS)[number];
}

// A tool that is a statement of SQL, with named parameters.
export function queryDocument(recipe: Recipe, { database, statement, write, returns }: Query): ToolDocument {
  const impl = { ...keptImpl(recipe), database: database.trim(), statement: statement.trim(), ...(write && { write }), ...(returns !== "rows" && { returns }) };
  return { ...headOf(recipe), type: "sql", outputSchema: recipe.stored?.outputSchema ?? {}, impl };
}

// What a stored tool says of how it runs and the builder has no field for.
function keptImpl({ stored }: Recipe): Record<string, unknown> {
  return (stored?.document.impl ?? {}) as Record<string, unknown>;
}

// The parameters that a statement names; not those in quotes, in comments or behind the two colons of a cast.
export function namesIn(statement: string): string[] {
  const code = statement.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\//g, " ");
  return [...new Set([...code.matchAll(/(?<![:\w]):([A-Za-z_]\w*)/g)].map((found) => found[1] as string))];
}

function headOf(recipe: Recipe): Pick<ToolDocument, "schemaVersion" | "displayName" | "description" | "isEnabled" | "argSchema" | "tags"> {
  const required = recipe.inputs.filter((input) => input.required).map((input) => input.name);
  return {
    ...(recipe.stored?.document ?? { schemaVersion: "toolcrib-1", isEnabled: true, tags: [] }),
    displayName: recipe.title.trim(),
    description: recipe.description.trim(),
    argSchema: {
      ...(recipe.stored?.argSchema ?? { type: "object", additionalProperties: false }),
      properties: Object.fromEntries(recipe.inputs.map((input) => [input.name, schemaOf(input)])),
      ...((required.length > 0 || !recipe.stored) && { required }),
    },
  };
}

function schemaOf(input: Input): Record<string, unknown> {
  const described = input.description.trim() ? { ...input.kept, description: input.description.trim() } : { ...input.kept };
  if (input.schema) return { ...input.schema, ...described };
  if (input.type === "array") return { ...described, type: "array", items: { ...(input.kept?.items as object | undefined), type: input.items } };
  return { type: input.type, ...described, ...(input.type === "string" && input.choices.length > 0 && { enum: input.choices }) };
}

// A value as a template writes it: fixed text with its own slots taken literally, or a slot.
function slot({ source, value }: Part, names: ReadonlyMap<string, string>): string {
  if (source.kind === "fixed") return String(value ?? "").replaceAll("${", () => "$${");
  if (source.kind === "written") return source.text;
  return source.kind === "step" ? `\${${names.get(source.step) ?? source.step}${inSlot(source.path)}}` : `\${${source.name}}`;
}

function inSlot(path: Path): string {
  return path.map((word) => (typeof word === "number" ? `[${word}]` : `.${word}`)).join("");
}

function outputSchema({ steps, stored }: Recipe): Record<string, unknown> {
  const step = steps.at(-1);
  // What a stored tool says of its result holds as long as the same is kept of the answer.
  if (stored && JSON.stringify(stored.keep) === JSON.stringify(step?.keep)) return stored.outputSchema;
  if (!step?.answer) return {};
  if (step.answer.kind === "text") return { type: "string" };
  const outcome = KINDS[step.run.kind].outcome(step);
  const kept = step.keep.kind === "path" ? keptOf(outcome, step.keep.path) : outcome;
  // One example says what kind of value it is, and no more: its fields may be missing in the next answer.
  if (Array.isArray(kept)) return step.keep.kind === "path" && step.keep.path.includes("*") ? {} : { type: "array" };
  if (kept === null || kept === undefined) return {};
  return { type: typeof kept === "object" ? "object" : typeof kept };
}

// Why a recipe cannot be saved yet; empty if it can.
export function problemsOf(recipe: Recipe): string[] {
  const problems = recipe.steps.flatMap((step) => KINDS[step.run.kind].problems(step));
  const names = recipe.steps.filter((step, place) => recipe.steps.length > 1 && !isStepName(recipe, place, step.name));
  problems.push(...names.map(({ name }) => t("recipe.problem.stepName", { name })));
  if (recipe.steps.length === 0) problems.push(t("recipe.problem.request"));
  return [...problems, ...problemsOfHead(recipe)];
}

export function problemsOfHead(recipe: Recipe): string[] {
  const problems: string[] = [];
  if (!recipe.title.trim()) problems.push(t("recipe.problem.name"));
  if (!recipe.description.trim()) problems.push(t("recipe.problem.description"));
  return problems;
}
