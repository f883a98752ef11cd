import { Validator } from "@cfworker/json-schema";
import { expect, test } from "vitest";
import { complaintsOf, type Finding, nameOf, type Schema, forForm } from "./schema-words";

const SHAPES: Schema = {
  type: "object",
  properties: {
    shape: { oneOf: [{ $ref: "#/$defs/circle" }, { $ref: "#/$defs/Square" }, { type: "null" }] },
    size: { anyOf: [{ type: "integer", minimum: 1 }, { enum: ["small", "large"] }, { type: "array", items: { type: "number" } }] },
  },
  $defs: {
    circle: { title: "A circle", type: "object", properties: { kind: { const: "circle" }, radius: { type: "number", exclusiveMinimum: 0 } }, required: ["kind", "radius"] },
    Square: { type: "object", properties: { kind: { const: "square" }, side: { type: "number" } }, required: ["kind", "side"] },
  },
};

function complaints(schema: Schema, value: unknown): string[] {
  const { errors } = new Validator(schema as never, "2020-12", false).validate(value);
  return complaintsOf(errors as Finding[], schema).map(({ path, message }) => `${path.join(".")}: ${message}`);
}

test("options of a union are named by title, by what they refer to, by their values or by their type, and never by a number", () => {
  const named = forForm(SHAPES) as { properties: { shape: { oneOf: Schema[] }; size: { anyOf: Schema[] } } };
  expect(named.properties.shape.oneOf.map((option) => option.title)).toEqual(["A circle", "Square", "Nothing"]);
  expect(named.properties.size.anyOf.map((option) => option.title)).toEqual(["Whole number", "small, large", "List of: Number"]);
});

test("an option without a title is named by the value that sets it apart, or by its fields", () => {
  const root = {};
  expect(nameOf({ type: "object", properties: { type: { const: "mail" }, to: {} } }, root)).toBe("mail");
  expect(nameOf({ type: "object", properties: { left: {}, right: {} } }, root)).toBe("Fields left, right");
  expect(nameOf({ type: ["string", "null"] }, root)).toBe("Text, Nothing");
  expect(nameOf(true, root)).toBe("Any value");
});

test("what sets an option apart cannot be changed; a field that is only named like a keyword is left alone", () => {
  const made = forForm({ properties: { const: { type: "string" }, to: { oneOf: [{ properties: { by: { const: "mail" }, address: { type: "string" } } }, { $ref: "#/$defs/a" }] } }, $defs: { a: { properties: { by: { const: "phone" } } } }, default: { anyOf: [{}] } });
  expect(made).toEqual({
    properties: {
      const: { type: "string" },
      to: { oneOf: [{ properties: { by: { const: "mail", readOnly: true }, address: { type: "string" } }, title: "mail" }, { $ref: "#/$defs/a", title: "a" }] },
    },
    $defs: { a: { properties: { by: { const: "phone", readOnly: true } } } },
    default: { anyOf: [{}] },
  });
});

test("a field says that it is required and what its default is, and one of any or of several types can be filled in", () => {
  const made = forForm({ properties: { any: {}, open: true, two: { type: ["integer", "string"], default: 7 }, one: { type: ["string", "null"], description: "A word." }, never: false, shape: { properties: {} } }, required: ["any", "one"] }) as { properties: Record<string, Schema> };
  const { any, open, two, one, never, shape } = made.properties;
  expect((any?.anyOf as Schema[]).map((option) => option.title)).toEqual(["Text", "Number", "Yes or no", "Fields", "List"]);
  expect((any?.anyOf as Schema[]).map((option) => option.description)).toEqual(Array(5).fill("Required."));
  expect((open?.anyOf as Schema[]).length).toBe(5);
  expect((two?.anyOf as Schema[]).map((option) => option.type)).toEqual(["integer", "string"]);
  expect(two).toMatchObject({ default: 7, anyOf: [{ description: "Default: 7." }, {}] });
  expect(one).toEqual({ type: ["string", "null"], description: "A word. Required." });
  expect([never, shape]).toEqual([false, { properties: {} }]);
});

test("options of the same name are told apart", () => {
  const named = forForm({ anyOf: [{ type: "string", minLength: 3 }, { type: "string", format: "date" }] }) as { anyOf: Schema[] };
  expect(named.anyOf.map((option) => option.title)).toEqual(["Text (1)", "Text (2)"]);
});

test("a schema that refers to itself is named and ends", () => {
  const root = { $defs: { loop: { $ref: "#/$defs/loop" }, deep: { anyOf: [{ $ref: "#/$defs/deep" }] } }, anyOf: [{ $ref: "#/$defs/loop" }, { $ref: "#/$defs/deep" }] };
  expect((forForm(root) as { anyOf: Schema[] }).anyOf.map((option) => option.title)).toEqual(["loop", "deep"]);
});

test("what is wrong is said in our words, with the limit of the schema", () => {
  const schema: Schema = {
    type: "object",
    properties: { name: { type: "string", minLength: 2 }, age: { type: "integer", maximum: 1200 }, when: {}, mood: { enum: ["calm", "wild"] }, list: { type: "array", minItems: 1, uniqueItems: true } },
    required: ["name", "when"],
    additionalProperties: false,
  };
  expect(complaints(schema, { name: "x", age: 5000, mood: "blue", list: [], other: 1 })).toEqual([
    "when: is required",
    "name: must have at least 2 characters",
    "age: must be at most 1,200",
    "mood: must be one of: calm, wild",
    "list: must have at least 1 item",
    "other: other is not an argument of this tool",
  ]);
  expect(complaints(schema, { name: 3, when: 1, list: [1, 1] })).toEqual(["name: must be: Text", "list: must not have the same item twice"]);
});

test("of a union only what is wrong with the option that was meant is said", () => {
  expect(complaints(SHAPES, { shape: { kind: "circle", radius: 0 } })).toEqual(["shape.radius: must be more than 0"]);
  expect(complaints(SHAPES, { shape: { kind: "square" } })).toEqual(["shape.side: is required"]);
  expect(complaints(SHAPES, { size: 0 })).toEqual(["size: must be at least 1"]);
  expect(complaints(SHAPES, { size: true })).toEqual(["size: does not fit"]);
});
