// Fields for the arguments of a tool, from its schema: plain ones for single values, JSON for everything else.

export interface Field {
  name: string;
  kind: "text" | "number" | "integer" | "boolean" | "choice" | "json";
  isRequired: boolean;
  label: HTMLLabelElement;
  control: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;
}

type Schema = Record<string, unknown>;
const MOST_FIELDS = 100;

export function fieldsOf(schema: Schema): Field[] {
  const properties = (schema.properties ?? {}) as Record<string, Schema>;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  return Object.entries(properties)
    .slice(0, MOST_FIELDS)
    .map(([name, one]) => makeField(name, one, required.has(name)));
}

function makeField(name: string, schema: Schema, isRequired: boolean): Field {
  const kind = kindOf(schema);
  const control = makeControl(kind, schema);
  control.name = name;
  if (schema.default !== undefined && control instanceof HTMLInputElement && control.type === "checkbox") control.checked = schema.default === true;
  else if (schema.default !== undefined) control.value = typeof schema.default === "string" ? schema.default : JSON.stringify(schema.default);
  const label = document.createElement("label");
  const description = typeof schema.description === "string" ? ` – ${schema.description}` : "";
  label.append(`${name}${isRequired ? " *" : ""}${description}`, control);
  return { name, kind, isRequired, label, control };
}

function kindOf(schema: Schema): Field["kind"] {
  if (Array.isArray(schema.enum) && schema.enum.every((one) => typeof one === "string")) return "choice";
  if (schema.type === "string") return "text";
  if (schema.type === "number" || schema.type === "integer" || schema.type === "boolean") return schema.type;
  return "json";
}

function makeControl(kind: Field["kind"], schema: Schema): Field["control"] {
  if (kind === "choice") {
    const select = document.createElement("select");
    for (const one of ["", ...(schema.enum as string[])]) select.append(new Option(one, one));
    return select;
  }
  if (kind === "json") return document.createElement("textarea");
  const input = document.createElement("input");
  input.type = kind === "boolean" ? "checkbox" : kind === "text" ? "text" : "number";
  if (kind === "number") input.step = "any";
  return input;
}

// The values as JSON; what was left empty is left out.
export function readFields(fields: Field[]): { values: Record<string, unknown> } | { problem: string } {
  const values: Record<string, unknown> = {};
  for (const { name, kind, isRequired, control } of fields) {
    if (kind === "boolean") {
      const { checked } = control as HTMLInputElement;
      if (checked || isRequired) values[name] = checked;
      continue;
    }
    const text = control.value;
    if (text === "" && !(isRequired && kind === "text")) {
      if (isRequired) return { problem: `${name} is needed` };
      continue;
    }
    if (kind === "text" || kind === "choice") values[name] = text;
    else if (kind === "json") {
      try {
        values[name] = JSON.parse(text);
      } catch {
        return { problem: `${name} is not valid JSON` };
      }
    } else values[name] = Number(text);
  }
  return { values };
}
