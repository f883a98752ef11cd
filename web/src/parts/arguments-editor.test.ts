import { expect, test } from "vitest";
import { argumentsOf, typed } from "./arguments-editor";
import { without } from "./run-history";

test("JSON that cannot be read keeps the values and the text", () => {
  const before = argumentsOf({ a: 1 });
  const broken = typed(before, '{"a": 2');
  expect([broken.values, broken.text]).toEqual([{ a: 1 }, '{"a": 2']);
  expect(broken.mistake).not.toBe("");
  expect(typed(before, "[1]").mistake).toBe("an object in braces is needed");
  expect(typed(broken, '{"a": 2}')).toEqual({ values: { a: 2 }, text: '{"a": 2}', mistake: "" });
});

test("masked values are left out, and items of a list keep their places", () => {
  const run = { city: "Oslo", api_key: "(hidden)", headers: ["a", "(hidden)"], deep: { token: "(hidden)", kept: 1 } };
  expect(without(run, [["api_key"], ["headers", "1"], ["deep", "token"], ["gone", "x"]])).toEqual({ city: "Oslo", headers: ["a", ""], deep: { kept: 1 } });
  expect(run.api_key).toBe("(hidden)");
});
