// The types of JSON values, and whether a value fits into a slot that takes some of them.
import { t } from "../messages";
import type { Json } from "./model";

export type ValueType = "string" | "number" | "boolean" | "list" | "object";
export type Format = "uuid" | "date-time" | "date" | "email" | "uri";

// What a slot takes. `items` are the types that a list may hold, `choices` the only values that are taken.
export interface Accepts {
  types: readonly ValueType[];
  format?: Format | undefined;
  items?: ValueType | undefined;
  choices?: readonly string[];
}

export const SINGLE: readonly ValueType[] = ["string", "number", "boolean"];

const FORMATS: [Format, RegExp][] = [
  ["uuid", /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i],
  ["date-time", /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)?$/],
  ["date", /^\d{4}-\d\d-\d\d$/],
  ["email", /^[^\s@]+@[^\s@]+\.[^\s@]+$/],
  ["uri", /^https?:\/\/\S+$/i],
];

export function typeOf(value: unknown): ValueType | null {
  if (Array.isArray(value)) return "list";
  if (value === null || value === undefined) return null;
  return typeof value === "object" ? "object" : (typeof value as ValueType);
}

export function formatOf(value: unknown): Format | undefined {
  return typeof value === "string" ? FORMATS.find(([, pattern]) => pattern.test(value))?.[0] : undefined;
}

// What takes a value like this example, in a place that can hold every type.
export function acceptsLike(example: Json): Accepts {
  const type = typeOf(example);
  if (type === null) return { types: SINGLE };
  const items = Array.isArray(example) ? (typeOf(example[0]) ?? undefined) : undefined;
  return { types: [type], format: formatOf(example), items };
}

export function fits({ types, format, items, choices }: Accepts, value: Json): boolean {
  const type = typeOf(value);
  if (type === null || !types.includes(type)) return false;
  if (choices?.length && !choices.includes(String(value))) return false;
  if (format && formatOf(value) !== format) return false;
  return !(items && Array.isArray(value)) || value.every((one) => typeOf(one) === items);
}

// What a person types as a value of JSON: a number and yes or no are what they look like.
export function typedValue(text: string): Json {
  if (/^-?(0|[1-9]\d{0,14})(\.\d{1,15})?$/.test(text.trim())) return Number(text);
  return text === "true" ? true : text === "false" ? false : text;
}

// What is taken, in words.
export function describe({ types, format, items, choices }: Accepts): string {
  if (choices?.length) return t("recipe.fits.choices", { choices: choices.join(", ") });
  if (format) return t(`recipe.fits.${format}`);
  if (items && types.includes("list")) return t("recipe.fits.listOf", { items: t(`recipe.fits.${items}`) });
  return types.length === SINGLE.length ? t("recipe.fits.single") : types.map((type) => t(`recipe.fits.${type}`)).join(", ");
}
