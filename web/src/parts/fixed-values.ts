// Fill in what the chosen option of a union fixes, such as {"by": "mail"}: a person chose the option, and need not type its mark.
import { isSchema, partAt, type Schema } from "./schema-words";

// The options that a person chose, by the ids that the form gives to its choices.
export type Chosen = ReadonlyMap<string, number>;

export function choiceId(path: readonly string[], kind: "oneOf" | "anyOf"): string {
  return `${["root", ...path].join("_")}__${kind.toLowerCase()}_select`;
}

export function withFixed(schema: unknown, value: unknown, chosen: Chosen, root: Schema, path: readonly string[] = []): unknown {
  const part = resolved(schema, root);
  if (!part || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item, place) => withFixed(part.items, item, chosen, root, [...path, String(place)]));
  let made = value as Schema;
  for (const kind of ["oneOf", "anyOf"] as const) {
    const options = part[kind];
    if (!Array.isArray(options)) continue;
    const option = options[chosen.get(choiceId(path, kind)) ?? options.findIndex((one) => isMeant(resolved(one, root), made))];
    if (option !== undefined) made = withFixed(option, { ...marksOf(resolved(option, root)), ...defined(made) }, chosen, root, path) as Schema;
  }
  if (!isSchema(part.properties)) return made;
  const properties = part.properties;
  return Object.fromEntries(Object.entries(made).map(([name, one]) => [name, name in properties ? withFixed(properties[name], one, chosen, root, [...path, name]) : one]));
}

function resolved(schema: unknown, root: Schema): Schema | null {
  const target = isSchema(schema) && typeof schema.$ref === "string" ? partAt(root, schema.$ref) : schema;
  return isSchema(target) ? target : null;
}

function defined(value: Schema): Schema {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));
}

// The fields whose values an option fixes.
function marksOf(option: Schema | null): Schema {
  const properties = option && isSchema(option.properties) ? option.properties : {};
  return Object.fromEntries(Object.entries(properties).flatMap(([name, one]) => (isSchema(one) && "const" in one ? [[name, one.const]] : [])));
}

// Whether a value can be of an option: it has only fields of the option, and none with another mark.
function isMeant(option: Schema | null, value: Schema): boolean {
  if (!option || !isSchema(option.properties)) return false;
  const { properties } = option;
  const marks = marksOf(option);
  return Object.entries(defined(value)).every(([name, one]) => name in properties && (!(name in marks) || marks[name] === one));
}
