// An example of a requested tool: a value for each input and output, as a person types it and as JSON.
import { typedValue } from "../recipe/value-types";

export interface Field {
  key: number;
  name: string;
  type: string;
  description: string;
  required: boolean;
  // The name that its values have while it has none, because another one is being typed.
  held?: string | undefined;
}

export type Values = Record<string, unknown>;
export type Side = "input" | "output";

// What a person typed into a field of a type; undefined for nothing. What does not fit stays the text that it is.
export function readValue(text: string, type: string): unknown {
  if (text === "") return undefined;
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : text;
  if (type === "integer" || type === "number") return /^-?\d{1,15}(\.\d{1,15})?$/.test(text.trim()) ? Number(text) : text;
  if (type === "array") return text.replace(/\n+$/, "").split("\n").map(typedValue);
  if (type === "object") return Object.fromEntries(text.split("\n").filter((line) => line.trim()).map(pairOf));
  return text;
}

// A line such as `name: value`.
function pairOf(line: string): [string, unknown] {
  const colon = line.indexOf(":");
  return colon < 0 ? [line.trim(), ""] : [line.slice(0, colon).trim(), typedValue(line.slice(colon + 1).trim())];
}

// A value as it stands in its field; null for one that only JSON can show.
export function showValue(value: unknown, type: string): string | null {
  if (value === undefined) return "";
  if (type === "array" && Array.isArray(value)) return value.every(isSingle) ? value.map(String).join("\n") : null;
  if (type === "object" && isFields(value)) return Object.values(value).every(isSingle) ? Object.entries(value).map(([name, one]) => `${name}: ${String(one)}`).join("\n") : null;
  return typeof value === "object" ? null : String(value);
}

// Whether a value is of the type that was chosen.
export function fitsType(value: unknown, type: string): boolean {
  if (value === undefined) return true;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isFields(value);
  if (type === "integer") return Number.isInteger(value);
  return typeof value === type;
}

function isSingle(value: unknown): boolean {
  return typeof value !== "object" && !(typeof value === "string" && /\n/.test(value));
}

function isFields(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// The fields after a change; one without a name remembers the one that it had.
export function remembering(before: readonly Field[], after: readonly Field[]): Field[] {
  return after.map((field) => {
    const known = before.find((one) => one.key === field.key);
    return { ...field, held: field.name ? undefined : known?.name || known?.held };
  });
}

// The values after fields were renamed or removed: a value goes with its field.
export function followed(values: Values, before: readonly Field[], after: readonly Field[]): Values {
  const names = new Map(after.map((field) => [field.key, field.name || field.held]));
  const moved = Object.entries(values).flatMap(([name, value]) => {
    const field = before.find((one) => (one.name || one.held) === name);
    const now = field ? names.get(field.key) : name;
    return now ? [[now, value] as const] : [];
  });
  return Object.fromEntries(moved);
}

export function isEmpty(example: Values): boolean {
  return (["input", "output"] as const).every((side) => Object.keys((example[side] as Values | undefined) ?? {}).length === 0);
}
