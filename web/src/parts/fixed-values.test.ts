import { expect, test } from "vitest";
import { choiceId, withFixed } from "./fixed-values";

const MAIL = { type: "object", properties: { by: { const: "mail" }, address: {}, note: {} } };
const ROOT = {
  properties: { to: { oneOf: [MAIL, { $ref: "#/$defs/Phone" }, { type: "null" }] }, all: { type: "array", items: { oneOf: [MAIL, { $ref: "#/$defs/Phone" }] } } },
  $defs: { Phone: { type: "object", properties: { by: { const: "phone" }, number: {}, note: {} } } },
};
const fill = (value: unknown, chosen = new Map<string, number>()) => withFixed(ROOT, value, chosen, ROOT);

test("the mark of the option that the typed fields belong to is filled in", () => {
  expect(fill({ to: { number: 7 } })).toEqual({ to: { by: "phone", number: 7 } });
  expect(fill({ all: [{ address: "a" }, { number: 1 }] })).toEqual({ all: [{ by: "mail", address: "a" }, { by: "phone", number: 1 }] });
});

test("what the person chose counts, also where fields could belong to several options", () => {
  expect(fill({ to: { by: undefined, note: "x" } }, new Map([[choiceId(["to"], "oneOf"), 1]]))).toEqual({ to: { by: "phone", note: "x" } });
});

test("nothing is invented where nothing was chosen or typed, and a mark that is there stays", () => {
  expect(fill({})).toEqual({});
  expect(fill({ to: null })).toEqual({ to: null });
  expect(fill({ to: { by: "phone", note: "x" } })).toEqual({ to: { by: "phone", note: "x" } });
  expect(fill({ to: { by: "fax" }, other: { by: 1 } })).toEqual({ to: { by: "fax" }, other: { by: 1 } });
});
