import { diffLines } from "./diff";

const shown = (before: string, after: string) => diffLines(before, after).map((line) => `${{ same: " ", removed: "-", added: "+" }[line.kind]}${line.text}`);

test("a changed line stands between the lines that stayed", () => {
  expect(shown("a\nb\nc", "a\nx\nc")).toEqual([" a", "-b", "+x", " c"]);
});

test("texts that are the same have no difference", () => {
  expect(shown("a\nb", "a\nb")).toEqual([" a", " b"]);
});

test("what is compared can be put together again from the lines", () => {
  const [before, after] = ["1\n2\n3\n4\n5", "0\n2\n4\n4\n6\n5"];
  const lines = diffLines(before, after);
  expect(lines.filter((line) => line.kind !== "added").map((line) => line.text).join("\n")).toBe(before);
  expect(lines.filter((line) => line.kind !== "removed").map((line) => line.text).join("\n")).toBe(after);
});

test("very long texts end at once", () => {
  const many = (word: string) => Array.from({ length: 50_000 }, (_, number) => `${word}${number}`).join("\n");
  expect(diffLines(many("a"), many("b"))).toHaveLength(100_000);
});
