// A form for the arguments of a tool, from its schema: nested objects, lists, maps and unions have fields of their own. Only a schema
// that allows anything is filled in as JSON.
import { textsWith, type Texts } from "./palette-messages";

type Schema = Record<string, unknown>;
// What a field holds: a value, nothing, or a mistake at a control.
export type Read = { value: unknown } | { nothing: true } | { problem: string; at: HTMLElement };

export interface Field {
  element: HTMLElement;
  // What takes the focus first.
  control: HTMLElement;
  read: () => Read;
}

interface Given {
  name: string;
  schema: Schema;
  isRequired: boolean;
  depth: number;
  // It stands in a frame already, which has its name.
  isFramed?: boolean;
}

const MOST_FIELDS = 100;
// Deeper ones, such as those of a schema that requires itself for ever, are JSON.
const MOST_DEPTH = 8;
const MOST_MADE = 10;
// A schema that requires itself several times would grow with each level.
const MOST_IN_ALL = 2_000;
const MOST_JOINED = 5;

// The form of all arguments; `read` gives them as one object.
export function formOf(schema: Schema, t: Texts = textsWith()): Field {
  const builder = new Builder(schema, t);
  if (Object.keys((schema.properties ?? {}) as object).length > MOST_FIELDS) {
    const field = builder.json({ name: t("palette.arguments"), schema, isRequired: false, depth: 0 }, t("palette.tooMany"));
    return { ...field, read: () => orEmpty(field.read()) };
  }
  return builder.members({ name: "", schema: { ...schema, additionalProperties: schema.properties ? false : schema.additionalProperties }, isRequired: true, depth: 0 });
}

function orEmpty(read: Read): Read {
  return "nothing" in read ? { value: {} } : read;
}

class Builder {
  private readonly root: Schema;
  private readonly t: Texts;
  private made = 0;

  constructor(root: Schema, t: Texts) {
    this.root = root;
    this.t = t;
  }

  // The field of one value. An optional one with fields of its own is there when it is asked for, so that no form is endless.
  field(given: Given): Field {
    const schema = this.plain(this.resolve(given.schema), given.isRequired);
    const one = { ...given, schema };
    const kind = kindOf(schema);
    if ((++this.made > MOST_IN_ALL || given.depth > MOST_DEPTH) && COMPOUND.has(kind)) return this.json(one);
    if (!given.isRequired && COMPOUND.has(kind) && given.depth > 0) return this.optional(one, () => this.make(kind, { ...one, isRequired: true }));
    return this.make(kind, one);
  }

  // What may be null, and may be left out too, is what it is besides.
  private plain(schema: Schema, isRequired: boolean): Schema {
    const kinds = branchesOf(schema).map((one) => this.resolve(one));
    const others = kinds.filter((one) => one.type !== "null");
    if (isRequired || others.length !== 1 || others.length === kinds.length) return schema;
    const { oneOf: _, anyOf: __, type: ___, ...beside } = schema;
    return { ...others[0], ...beside };
  }

  private make(kind: Kind, given: Given): Field {
    if (kind === "union") return this.union(given);
    if (kind === "object") return this.group(given, (inner) => this.members(inner));
    if (kind === "array") return this.group(given, (inner) => this.items(inner));
    if (kind === "any") return this.json(given);
    if (kind === "choice") return this.choice(given, given.schema.enum as unknown[]);
    if (kind === "const") return this.choice(given, [given.schema.const]);
    if (kind === "boolean") return given.isRequired || given.schema.default !== undefined ? this.checkbox(given) : this.choice(given, [true, false]);
    if (kind === "null") return { element: element("span"), control: element("span"), read: () => ({ value: null }) };
    return this.single(kind, given);
  }

  private single(kind: "string" | "number" | "integer", given: Given): Field {
    const input = element("input", { type: "text", ...(kind === "integer" && { inputmode: "numeric" }), ...(kind === "number" && { inputmode: "decimal" }) });
    if (given.schema.default !== undefined && given.schema.default !== null) input.value = String(given.schema.default);
    const read = (): Read => {
      const text = input.value;
      // An empty text that is needed is sent: it may be meant.
      if (text === "" && !(given.isRequired && kind === "string")) return given.isRequired ? this.missing(given, input) : { nothing: true };
      if (kind === "string") return { value: text };
      const number = Number(text);
      return text.trim() === "" || !Number.isFinite(number) ? { problem: this.t("palette.notNumber", { name: given.name }), at: input } : { value: number };
    };
    return this.labelled(given, input, read);
  }

  private checkbox(given: Given): Field {
    const input = element("input", { type: "checkbox" });
    input.checked = given.schema.default === true;
    const label = element("label", { class: "row" });
    label.append(input, this.caption(given));
    return { element: label, control: named(input, given), read: () => ({ value: input.checked }) };
  }

  private choice(given: Given, values: unknown[]): Field {
    const select = element("select");
    const isFixed = values.length === 1 && given.isRequired;
    if (!isFixed) select.append(new Option("", ""));
    values.forEach((value, place) => select.append(new Option(this.shown(value), String(place))));
    const start = values.findIndex((value) => JSON.stringify(value) === JSON.stringify(given.schema.default));
    if (start >= 0) select.value = String(start);
    const read = (): Read => (select.value === "" ? (given.isRequired ? this.missing(given, select) : { nothing: true }) : { value: values[Number(select.value)] });
    return this.labelled(given, select, read);
  }

  json(given: Given, help = this.t("palette.json.help")): Field {
    const area = element("textarea", { rows: "3" });
    if (given.schema.default !== undefined) area.value = JSON.stringify(given.schema.default);
    const read = (): Read => {
      if (area.value.trim() === "") return given.isRequired ? this.missing(given, area) : { nothing: true };
      try {
        return { value: JSON.parse(area.value) };
      } catch {
        return { problem: this.t("palette.notJson", { name: given.name }), at: area };
      }
    };
    const field = this.labelled({ ...given, name: this.t("palette.json", { name: given.name }) }, area, read);
    area.name = given.name;
    field.element.append(small(help));
    return field;
  }

  // The members of an object, and rows of name and value where it takes further ones.
  members({ schema, depth }: Given): Field {
    const box = element("div");
    const required = new Set(Array.isArray(schema.required) ? (schema.required as string[]) : []);
    const fields = Object.entries((schema.properties ?? {}) as Record<string, Schema>).slice(0, MOST_FIELDS)
      .map(([name, one]) => ({ name, field: this.field({ name, schema: one, isRequired: required.has(name), depth: depth + 1 }) }));
    box.append(...fields.map(({ field }) => field.element));
    const further = isSchema(schema.additionalProperties) ? this.rows(schema.additionalProperties, depth) : null;
    if (further) box.append(further.element);
    const read = (): Read => {
      const values: Record<string, unknown> = {};
      for (const { name, field } of fields) {
        const found = field.read();
        if ("problem" in found) return found;
        if ("value" in found) values[name] = found.value;
      }
      const others = further?.read() ?? { nothing: true };
      if ("problem" in others) return others;
      return { value: { ...values, ...("value" in others && (others.value as object)) } };
    };
    return { element: box, control: fields[0]?.field.control ?? further?.control ?? box, read };
  }

  // A list: its items are added and removed one by one.
  private items({ name, schema, depth }: Given): Field {
    const one = isSchema(schema.items) ? schema.items : {};
    const first = Array.isArray(schema.prefixItems) ? (schema.prefixItems as Schema[]) : [];
    const least = Math.min(Math.max(Number(schema.minItems ?? 0), first.length), MOST_MADE);
    const make = (place: number): Field => this.field({ name: this.t("palette.item", { name, number: place + 1 }), schema: first[place] ?? one, isRequired: true, depth: depth + 1 });
    return this.list(name, this.t("palette.addItem", { name }), make, least, (reads) => ({ value: reads }));
  }

  private rows(schema: Schema, depth: number): Field {
    const name = this.t("palette.key");
    const make = (place: number): Field => {
      const key = this.single("string", { name: `${name} ${place + 1}`, schema: {}, isRequired: true, depth: depth + 1 });
      const value = this.field({ name: this.t("palette.item", { name: this.kindName(schema), number: place + 1 }), schema, isRequired: true, depth: depth + 1 });
      const row = element("div");
      row.append(key.element, value.element);
      const read = (): Read => {
        const [named_, found] = [key.read(), value.read()];
        if ("problem" in named_) return named_;
        return "value" in found && "value" in named_ ? { value: [named_.value, found.value, key.control] } : found;
      };
      return { element: row, control: key.control, read };
    };
    return this.list(name, this.t("palette.add", { name: this.kindName(schema) }), make, 0, (reads) => {
      const pairs = reads as [string, unknown, HTMLElement][];
      const twice = pairs.find(([key], place) => pairs.findIndex(([other]) => other === key) < place);
      return twice ? { problem: this.t("palette.twice", { name: twice[0] }), at: twice[2] } : { value: Object.fromEntries(pairs) };
    });
  }

  private list(name: string, addText: string, make: (place: number) => Field, least: number, join: (reads: unknown[]) => Read): Field {
    const box = element("div");
    const rows = element("div");
    const fields: Field[] = [];
    const add = button(addText);
    const append = (isFocused: boolean) => {
      const field = make(fields.length);
      const row = element("div", { class: "item" });
      const remove = button("✕");
      remove.setAttribute("aria-label", this.t("palette.remove", { name: this.t("palette.item", { name, number: fields.length + 1 }) }));
      remove.addEventListener("click", () => {
        fields.splice(fields.indexOf(field), 1);
        row.remove();
        add.focus();
      });
      row.append(field.element, remove);
      fields.push(field);
      rows.append(row);
      if (isFocused) field.control.focus();
    };
    add.addEventListener("click", () => append(true));
    for (let place = 0; place < least; place++) append(false);
    box.append(rows, add);
    const read = (): Read => {
      const values: unknown[] = [];
      for (const field of fields) {
        const found = field.read();
        if ("problem" in found) return found;
        if ("value" in found) values.push(found.value);
      }
      return join(values);
    };
    return { element: box, control: fields[0]?.control ?? add, read };
  }

  // One of several kinds, chosen by its title.
  private union(given: Given): Field {
    const kinds = branchesOf(given.schema).map((schema) => this.resolve(schema));
    const select = element("select", { "aria-label": this.t("palette.union", { name: given.name }) });
    const titles = kinds.map((schema, place) => this.kindName(schema, place));
    titles.forEach((title, place) => select.append(new Option(titles.indexOf(title) === place ? title : `${title} ${place + 1}`, String(place))));
    const start = given.isRequired ? 0 : Math.max(kinds.findIndex((schema) => schema.type === "null"), 0);
    const inner = element("div");
    let field: Field;
    const choose = (place: number) => {
      const schema = kinds[place] as Schema;
      const kind = kindOf(schema);
      const name = kind === "object" || kind === "array" ? given.name : (titles[place] ?? given.name);
      field = this.field({ name, schema, isRequired: true, depth: given.depth + 1, isFramed: true });
      inner.replaceChildren(field.element);
    };
    select.addEventListener("change", () => choose(Number(select.value)));
    select.value = String(start);
    choose(start);
    const group = this.group(given, () => ({ element: element("div"), control: select, read: () => field.read() }));
    group.element.append(select, inner);
    return { ...group, control: select };
  }

  private optional(given: Given, make: () => Field): Field {
    const box = element("div", { class: "item" });
    let field: Field | null = null;
    const toggle = button(this.t("palette.add", { name: given.name }));
    toggle.addEventListener("click", () => {
      field?.element.remove();
      field = field ? null : make();
      toggle.textContent = this.t(field ? "palette.remove" : "palette.add", { name: given.name });
      if (!field) return;
      box.prepend(field.element);
      field.control.focus();
    });
    box.append(toggle);
    return { element: box, control: toggle, read: () => field?.read() ?? { nothing: true } };
  }

  private group(given: Given, make: (given: Given) => Field): Field {
    const field = make(given);
    if (given.isFramed) return field;
    const box = element("fieldset");
    const legend = element("legend");
    legend.textContent = this.caption({ ...given, schema: { ...given.schema, description: undefined } });
    box.append(legend);
    if (typeof given.schema.description === "string") box.append(small(given.schema.description));
    box.append(field.element);
    return { ...field, element: box };
  }

  private labelled(given: Given, control: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement, read: () => Read): Field {
    const label = element("label");
    label.append(this.caption(given), named(control, given));
    return { element: label, control, read };
  }

  private caption({ name, schema, isRequired }: Given): string {
    return `${name}${isRequired ? " *" : ""}${typeof schema.description === "string" ? ` – ${schema.description}` : ""}`;
  }

  private missing({ name }: Given, at: HTMLElement): Read {
    return { problem: this.t("palette.needed", { name }), at };
  }

  private shown(value: unknown): string {
    if (typeof value === "boolean") return this.t(value ? "palette.yes" : "palette.no");
    return value === null ? this.t("palette.nothing") : typeof value === "string" ? value : JSON.stringify(value);
  }

  // What a kind of a union is called: its title, the fixed value that tells it from the others, or its type.
  private kindName(given: Schema, place = 0, depth = 0): string {
    const schema = this.resolve(given);
    if (typeof schema.title === "string" && schema.title) return schema.title;
    const fixed = Object.values((schema.properties ?? {}) as Record<string, Schema>).find((one) => isSchema(one) && one.const !== undefined);
    if (fixed) return this.shown(fixed.const);
    const kind = kindOf(schema);
    if (kind === "const") return this.shown(schema.const);
    if (kind === "null") return this.t("palette.nothing");
    if (kind === "choice") return (schema.enum as unknown[]).map((one) => this.shown(one)).join(", ").slice(0, 60);
    if (kind === "union") return depth < 2 ? branchesOf(schema).slice(0, 5).map((one) => this.kindName(one, 0, depth + 1)).join(" / ") : String(place + 1);
    return this.t(`palette.kind.${kind}`);
  }

  // What a schema means: references followed, and parts that hold together joined.
  private resolve(given: unknown, depth = 0): Schema {
    if (depth > MOST_JOINED) return {};
    let schema: Schema = isSchema(given) ? given : {};
    for (let hops = 0; typeof schema.$ref === "string" && hops < 20; hops++) {
      const { $ref, ...beside } = schema;
      schema = { ...this.find($ref as string), ...beside };
    }
    if (Array.isArray(schema.allOf)) {
      const { allOf, ...beside } = schema;
      const parts = (allOf as unknown[]).map((one) => this.resolve(one, depth + 1));
      return parts.concat(beside).reduce((whole, part) => ({
        ...whole, ...part,
        ...(whole.properties || part.properties ? { properties: { ...(whole.properties as object), ...(part.properties as object) } } : {}),
        ...(whole.required || part.required ? { required: [...((whole.required ?? []) as string[]), ...((part.required ?? []) as string[])] } : {}),
      }), {} as Schema);
    }
    return schema;
  }

  private find(reference: string): Schema {
    if (!reference.startsWith("#")) return {};
    const words = reference.slice(1).split("/").slice(1).map((word) => decodeURIComponent(word).replaceAll("~1", "/").replaceAll("~0", "~"));
    const found = words.reduce<unknown>((place, word) => (typeof place === "object" && place !== null ? (place as Schema)[word] : undefined), this.root);
    return isSchema(found) ? found : {};
  }
}

type Kind = "string" | "number" | "integer" | "boolean" | "null" | "choice" | "const" | "array" | "object" | "union" | "any";
const COMPOUND: ReadonlySet<Kind> = new Set(["array", "object", "union"]);

function kindOf(schema: Schema): Kind {
  if (schema.const !== undefined) return "const";
  if (Array.isArray(schema.enum)) return "choice";
  const isNamed = Object.keys((schema.properties ?? {}) as object).length > 0;
  // Beside members a union only says which of them go together; the server judges that.
  if (branchesOf(schema).length > 0 && !isNamed) return "union";
  if (["string", "number", "integer", "boolean", "null", "array"].includes(schema.type as string)) return schema.type as Kind;
  if ((schema.type === "object" || isNamed) && (isNamed || isSchema(schema.additionalProperties) || schema.additionalProperties === false)) return "object";
  return "any";
}

// The kinds of a union, however it is written.
function branchesOf(schema: Schema): Schema[] {
  const written = [schema.oneOf, schema.anyOf].find(Array.isArray) as Schema[] | undefined;
  if (written) return written;
  return Array.isArray(schema.type) ? (schema.type as string[]).map((type) => ({ ...schema, type, description: undefined, title: undefined })) : [];
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function named<Control extends HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>(control: Control, { name, isRequired }: Given): Control {
  control.name = name;
  if (isRequired) control.setAttribute("aria-required", "true");
  return control;
}

function small(text: string): HTMLElement {
  const made = element("small");
  made.textContent = text;
  return made;
}

export function element<Name extends keyof HTMLElementTagNameMap>(name: Name, attributes: Record<string, string> = {}): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function button(text: string, type: "submit" | "button" = "button"): HTMLButtonElement {
  const made = element("button", { type });
  made.textContent = text;
  return made;
}
