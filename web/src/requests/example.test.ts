import { expect, test } from "vitest";
import { type Field, fitsType, followed, isEmpty, readValue, remembering, showValue } from "./example";

const field = (key: number, name: string, type = "string"): Field => ({ key, name, type, description: "", required: true });

test("what is typed is read by the type that was chosen, and shown again as it was typed", () => {
  const cases: [string, string, unknown][] = [
    ["string", "12", "12"],
    ["integer", "12", 12],
    ["number", "-1.5", -1.5],
    ["boolean", "false", false],
    ["array", "red\n2\ntrue", ["red", 2, true]],
    ["object", "city: Oslo\nzip: 150", { city: "Oslo", zip: 150 }],
  ];
  for (const [type, text, value] of cases) {
    expect(readValue(text, type)).toEqual(value);
    expect(showValue(value, type)).toBe(text);
    expect(fitsType(value, type)).toBe(true);
  }
});

test("what does not fit stays as it was typed, and is said to be wrong", () => {
  expect(readValue("twelve", "integer")).toBe("twelve");
  expect(fitsType("twelve", "integer")).toBe(false);
  expect(fitsType(1.5, "integer")).toBe(false);
});

test("nothing typed is nothing given, and what only JSON can hold is left to it", () => {
  expect(readValue("", "array")).toBe(undefined);
  expect(showValue([{ a: 1 }], "array")).toBe(null);
  expect(showValue({ a: [1] }, "object")).toBe(null);
  expect(showValue(["two\nlines"], "array")).toBe(null);
});

test("a value goes with its field when that is renamed, and away with it", () => {
  const before = [field(1, "text"), field(2, "times")];
  expect(followed({ text: "a", times: 2, more: 3 }, before, [field(1, "texts")])).toEqual({ texts: "a", more: 3 });
  // A person empties the name and types another one.
  const empty = remembering(before, [field(1, ""), field(2, "times")]);
  const values = followed({ text: "a" }, before, empty);
  expect(followed(values, empty, remembering(empty, [field(1, "words"), field(2, "times")]))).toEqual({ words: "a" });
});

test("an example without any value is none", () => {
  expect(isEmpty({ input: {}, output: {} })).toBe(true);
  expect(isEmpty({ input: { a: 1 }, output: {} })).toBe(false);
});
