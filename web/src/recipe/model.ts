// A recipe: steps in order. A step has slots (its parts), runs, and gives an answer of which some is kept. How it runs is
// one of the kinds of kinds.ts; nothing in this file knows which.
import type { Run } from "./kinds";

export type Scalar = string | number | boolean | null;
export type Json = Scalar | Json[] | { [key: string]: Json };
export type Path = (string | number)[];

export type Source =
  | { kind: "fixed" }
  | { kind: "input"; name: string }
  | { kind: "secret"; name: string }
  | { kind: "step"; step: string; path: Path }
  // A template that a stored tool has in this place and that no other source can say; it is kept as it is written.
  | { kind: "written"; text: string };

// One value that a step needs: `value` is what the example had in this place, `at` where it stands in a larger document.
export interface Part {
  id: string;
  place: string;
  label: string;
  value: Json;
  source: Source;
  at?: Path;
}

// `id` stays when the name changes; slots of later steps refer to it.
export interface Step {
  id: string;
  name: string;
  parts: Part[];
  answer: Answer | null;
  keep: Keep;
  run: Run;
}

// An answer that the person pasted or that a trial gave.
export type Answer = { kind: "json"; value: unknown } | { kind: "text"; text: string };

// What of the answer is kept: everything, a place in JSON ("*" for all of a list), the content of an XML element, or what an
// expression of a stored tool says that was not made here.
export type Keep = { kind: "all" } | { kind: "path"; path: Path } | { kind: "element"; name: string } | { kind: "written"; text: string };

export type InputType = "string" | "integer" | "number" | "boolean" | "array";

// `items` says what a list holds. Of a stored tool there may be more: `kept` is what its schema says besides, `schema` the whole of
// one that the form has no fields for, and `isFree` marks one that no part names, which stays all the same.
export interface Input {
  name: string;
  type: InputType;
  items: InputType;
  description: string;
  required: boolean;
  choices: string[];
  kept?: Record<string, unknown>;
  schema?: Record<string, unknown>;
  isFree?: boolean;
}

export interface Recipe {
  title: string;
  description: string;
  inputs: Input[];
  steps: Step[];
  // What the document of a stored tool says that a recipe does not.
  stored?: Stored;
}

export interface Stored {
  document: { schemaVersion: string; isEnabled: boolean; tags: string[] } & Record<string, unknown>;
  argSchema: Record<string, unknown>;
  outputSchema: Record<string, unknown>;
  // What was kept of the last answer when the tool was opened: with something else its schema is another.
  keep: Keep | undefined;
}

export const EMPTY: Recipe = { title: "", description: "", inputs: [], steps: [] };
const FIXED: Source = { kind: "fixed" };
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

export function isName(text: string): boolean {
  return NAME.test(text);
}

// A usable name for what a part holds: "user-id" becomes user_id.
export function nameFor(label: string, taken: Iterable<string> = []): string {
  const plain = label.replace(/[^A-Za-z0-9]+/g, "_").replace(/^_+|_+$/g, "").replace(/^(\d)/, "_$1").slice(0, 50) || "value";
  const used = new Set(taken);
  if (!used.has(plain)) return plain;
  for (let number = 2; ; number++) if (!used.has(`${plain}_${number}`)) return `${plain}_${number}`;
}

export function newStepName(recipe: Recipe): string {
  return nameFor(`request_${recipe.steps.length + 1}`, recipe.steps.flatMap((step) => [step.id, step.name]));
}

export function inputTypeOf(value: Json): InputType {
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "boolean";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return "string";
}

export function newInput(name: string, example: Json = ""): Input {
  const first = Array.isArray(example) ? (example[0] ?? "") : "";
  return { name, type: inputTypeOf(example), items: inputTypeOf(first), description: "", required: true, choices: [] };
}

// Give a part another source; an input that is new is declared, and one that nothing uses any more goes.
export function assign(recipe: Recipe, step: number, part: string, source: Source): Recipe {
  const found = recipe.steps[step]?.parts.find((one) => one.id === part);
  if (!found) return recipe;
  const change = (one: Part): Part => {
    if (one.id === part) return { ...one, source };
    // What stands inside a list or object that comes from elsewhere is replaced with it.
    return source.kind !== "fixed" && isInside(one, found) ? { ...one, source: FIXED } : one;
  };
  let { inputs } = recipe;
  if (source.kind === "input" && !inputs.some((input) => input.name === source.name)) inputs = [...inputs, newInput(source.name, found.value)];
  return withoutUnused({ ...changeStep(recipe, step, (one) => ({ ...one, parts: one.parts.map(change) })), inputs });
}

export function changeStep(recipe: Recipe, step: number, change: (step: Step) => Step): Recipe {
  return { ...recipe, steps: recipe.steps.map((one, place) => (place === step ? change(one) : one)) };
}

// Leave out inputs that no part names.
export function withoutUnused(recipe: Recipe): Recipe {
  const used = new Set(recipe.steps.flatMap((one) => one.parts.flatMap((each) => (each.source.kind === "input" ? [each.source.name] : []))));
  // What is kept as it is written may name an input anywhere.
  const written = recipe.stored ? JSON.stringify(recipe.steps.map((step) => [step.run, step.keep, step.parts.map((part) => part.source)])) : "";
  return { ...recipe, inputs: recipe.inputs.filter((input) => used.has(input.name) || input.isFree || written.includes(`\${${input.name}`)) };
}

export function isInside(inner: Part, outer: Part): boolean {
  const { at: inside } = inner;
  const { at: outside } = outer;
  return inside !== undefined && outside !== undefined && inside.length > outside.length && outside.every((word, place) => inside[place] === word);
}

// The parts of a step that are filled: those inside a list or object that comes from elsewhere are not.
export function openParts(step: Step): Part[] {
  const outer = step.parts.filter((part) => part.source.kind !== "fixed" && part.at !== undefined);
  return step.parts.filter((part) => !outer.some((one) => isInside(part, one)));
}

const MOST_VALUES = 500;

// Every value of a JSON document with its place, lists and objects included; of a large one the first.
export function valuesIn(value: unknown, path: Path = [], found: { path: Path; value: Json }[] = []): { path: Path; value: Json }[] {
  if (found.length >= MOST_VALUES) return found;
  found.push({ path, value: value as Json });
  if (Array.isArray(value)) value.forEach((one, place) => valuesIn(one, [...path, place], found));
  else if (typeof value === "object" && value !== null) Object.entries(value).forEach(([key, one]) => valuesIn(one, [...path, key], found));
  return found;
}

// What used a removed step is fixed from then on.
export function removeStep(recipe: Recipe, step: number): Recipe {
  return withoutUnused(withoutDangling({ ...recipe, steps: recipe.steps.filter((_, place) => place !== step) }));
}

export function moveStep(recipe: Recipe, step: number, by: 1 | -1): Recipe {
  const steps = [...recipe.steps];
  const [moved] = steps.splice(step, 1);
  if (!moved) return recipe;
  steps.splice(step + by, 0, moved);
  return withoutDangling({ ...recipe, steps });
}

// A step can only use what is there before it.
function withoutDangling(recipe: Recipe): Recipe {
  const before = new Set<string>();
  const steps = recipe.steps.map((step) => {
    const parts = step.parts.map((part) => (part.source.kind === "step" && !before.has(part.source.step) ? { ...part, source: FIXED } : part));
    before.add(step.id);
    return { ...step, parts };
  });
  return { ...recipe, steps };
}

// Whether a step may have this name: slots name steps and inputs alike.
export function isStepName(recipe: Recipe, step: number, name: string): boolean {
  return isName(name) && !recipe.inputs.some((input) => input.name === name) && !recipe.steps.some((one, place) => place !== step && one.name === name);
}

export function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((found, key) => (typeof found === "object" && found !== null ? (found as Record<string | number, unknown>)[key] : undefined), value);
}
