// What earlier steps give to a slot: only values whose type fits are offered.
import { t } from "../messages";
import { KINDS } from "./kinds";
import { type Json, type Part, type Path, type Recipe, type Step, valuesIn } from "./model";
import { type Accepts, describe, fits } from "./value-types";

export interface Output {
  step: string;
  path: Path;
  value: Json;
}

// What the server can name in a slot behind a dot.
const NAMEABLE = /^[\p{L}_][\p{L}\p{Nd}_-]*$/u;

// What a slot takes: by its place, by its example, and by the choices of the input that it had.
export function acceptsOf(recipe: Recipe, step: Step, part: Part): Accepts {
  const { source } = part;
  const choices = source.kind === "input" ? (recipe.inputs.find((input) => input.name === source.name)?.choices ?? []) : [];
  return { ...KINDS[step.run.kind].accepts(step, part), choices };
}

// Every value that the answers of earlier steps hold and that a slot can name.
export function outputsBefore(recipe: Recipe, place: number): Output[] {
  return recipe.steps.slice(0, place).flatMap(outputsOf);
}

export function outputsOf(step: Step): Output[] {
  const outcome = KINDS[step.run.kind].outcome(step);
  const named = valuesIn(outcome).filter(({ path }) => path.every((word) => typeof word === "number" || NAMEABLE.test(word)));
  return outcome === undefined ? [] : named.map(({ path, value }) => ({ step: step.id, path, value }));
}

// The values that a slot is offered, and why there are none if there are none.
export function offersFor(recipe: Recipe, place: number, part: Part): { outputs: Output[]; reason: string } {
  const all = outputsBefore(recipe, place);
  const accepts = acceptsOf(recipe, recipe.steps[place] as Step, part);
  const outputs = all.filter((one) => fits(accepts, one.value));
  if (outputs.length > 0) return { outputs, reason: "" };
  return { outputs, reason: all.length === 0 ? t("recipe.fits.noAnswer") : t("recipe.fits.none", { count: all.length, what: describe(accepts) }) };
}
