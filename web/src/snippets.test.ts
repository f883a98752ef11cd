import { python, quoted } from "./snippets";

test("a word with quotes is read back by a shell as it was", () => {
  expect(quoted(`it's "x"`)).toBe(`'it'"'"'s "x"'`);
  expect(quoted("plain/word@1.0")).toBe("plain/word@1.0");
});

test("a JSON value becomes a Python literal", () => {
  expect(python({ a: [true, null, 1.5, "ü\n"] })).toBe('{"a": [True, None, 1.5, "ü\\n"]}');
});
