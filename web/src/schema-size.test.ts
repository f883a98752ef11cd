import { isTooLarge } from "./schema-size";

test("a schema that a person can fill in gets a form", () => {
  expect(isTooLarge({ type: "object", properties: { a: { type: "string" }, b: { anyOf: [{ type: "string" }, { type: "integer" }] } } })).toBe(false);
});

test("10,000 fields or 100 levels do not", () => {
  const wide = { properties: Object.fromEntries(Array.from({ length: 10_000 }, (_, number) => [`f${number}`, {}])) };
  let deep: object = { type: "string" };
  for (let level = 0; level < 100; level += 1) deep = { properties: { next: deep } };
  expect([isTooLarge(wide), isTooLarge(deep)]).toEqual([true, true]);
});
