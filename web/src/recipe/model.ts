// A recipe: requests in order, whose parts are fixed, given by the caller, secret, or taken from an earlier answer.

export type Source =
  | { kind: "fixed" }
  | { kind: "input"; name: string }
  | { kind: "secret"; name: string }
  | { kind: "step"; step: string; path: Path };

export type Path = (string | number)[];
export type Place = "path" | "query" | "header" | "body";
export type Scalar = string | number | boolean | null;
export type Method = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";

// One value of a request: `value` is what the example had in this place, `at` where it stands in a body.
export interface Part {
  id: string;
  place: Place;
  label: string;
  value: Scalar;
  source: Source;
  at?: Path;
}

export type Body = { kind: "none" } | { kind: "json"; example: unknown } | { kind: "form" } | { kind: "text"; text: string };

export interface Step {
  name: string;
  method: Method;
  origin: string;
  parts: Part[];
  body: Body;
  answer: Answer | null;
  keep: Keep;
}

// An answer that the person pasted or that a trial gave.
export type Answer = { kind: "json"; value: unknown } | { kind: "text"; text: string };

// What of the answer is kept: everything, a place in JSON ("*" for all of a list), or the content of an XML element.
export type Keep = { kind: "all" } | { kind: "path"; path: Path } | { kind: "element"; name: string };

export type InputType = "string" | "integer" | "number" | "boolean";

export interface Input {
  name: string;
  type: InputType;
  description: string;
  required: boolean;
  choices: string[];
}

export interface Recipe {
  title: string;
  description: string;
  inputs: Input[];
  steps: Step[];
}

export const EMPTY: Recipe = { title: "", description: "", inputs: [], steps: [] };
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

export function typeOf(value: Scalar): InputType {
  if (typeof value === "boolean") return "boolean";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return "string";
}

// Give a part another source; an input that is new is declared, and one that nothing uses any more goes.
export function assign(recipe: Recipe, step: number, part: string, source: Source): Recipe {
  const steps = recipe.steps.map((one, place) =>
    place === step ? { ...one, parts: one.parts.map((found) => (found.id === part ? { ...found, source } : found)) } : one,
  );
  const found = recipe.steps[step]?.parts.find((one) => one.id === part);
  let inputs = recipe.inputs;
  if (source.kind === "input" && !inputs.some((input) => input.name === source.name)) {
    inputs = [...inputs, { name: source.name, type: typeOf(found?.value ?? ""), description: "", required: true, choices: [] }];
  }
  const used = new Set(steps.flatMap((one) => one.parts.flatMap((each) => (each.source.kind === "input" ? [each.source.name] : []))));
  return { ...recipe, steps, inputs: inputs.filter((input) => used.has(input.name)) };
}

// What an earlier answer can give to a part: only single values fit into a request.
export interface Output {
  step: string;
  path: Path;
  value: Scalar;
}

export function outputsBefore(recipe: Recipe, step: number): Output[] {
  return recipe.steps.slice(0, step).flatMap((one) =>
    one.answer?.kind === "json" ? leaves(one.answer.value).map(({ path, value }) => ({ step: one.name, path, value })) : [],
  );
}

const MOST_LEAVES = 500;

// Every single value of a JSON document with its place; of a large one the first.
export function leaves(value: unknown, path: Path = [], found: { path: Path; value: Scalar }[] = []): { path: Path; value: Scalar }[] {
  if (found.length >= MOST_LEAVES) return found;
  if (Array.isArray(value)) value.forEach((one, place) => leaves(one, [...path, place], found));
  else if (typeof value === "object" && value !== null) Object.entries(value).forEach(([key, one]) => leaves(one, [...path, key], found));
  else found.push({ path, value: value as Scalar });
  return found;
}

// Take steps that used a removed or renamed one back to fixed values.
export function removeStep(recipe: Recipe, step: number): Recipe {
  const name = recipe.steps[step]?.name;
  const steps = recipe.steps
    .filter((_, place) => place !== step)
    .map((one) => ({
      ...one,
      parts: one.parts.map((part) => (part.source.kind === "step" && part.source.step === name ? { ...part, source: { kind: "fixed" } as Source } : part)),
    }));
  return { ...recipe, steps };
}

export function moveStep(recipe: Recipe, step: number, by: 1 | -1): Recipe {
  const steps = [...recipe.steps];
  const [moved] = steps.splice(step, 1);
  if (!moved) return recipe;
  steps.splice(step + by, 0, moved);
  // A step can only use what is there before it.
  return {
    ...recipe,
    steps: steps.map((one, place) => {
      const before = new Set(steps.slice(0, place).map((each) => each.name));
      return {
        ...one,
        parts: one.parts.map((part) => (part.source.kind === "step" && !before.has(part.source.step) ? { ...part, source: { kind: "fixed" } as Source } : part)),
      };
    }),
  };
}

export function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((found, key) => (typeof found === "object" && found !== null ? (found as Record<string | number, unknown>)[key] : undefined), value);
}
