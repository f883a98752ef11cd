import { alignLines, diffLines, wordMarks } from "./diff";

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

test("replaced lines stand in one row, and what has no counterpart stands alone", () => {
  const rows = alignLines("a\nb\nc\nd", "a\nx\nd\ne").map(({ left, right }) => [left && `${left.number}${left.text}`, right && `${right.number}${right.text}`]);
  expect(rows).toEqual([["1a", "1a"], ["2b", "2x"], ["3c", null], ["4d", "3d"], [null, "4e"]]);
});

test("both columns can be read from top to bottom as the texts that they are", () => {
  const [before, after] = ["1\n2\n3\n4\n5", "0\n2\n4\n4\n6\n5"];
  const rows = alignLines(before, after);
  expect(rows.flatMap(({ left }) => (left ? [left.text] : [])).join("\n")).toBe(before);
  expect(rows.flatMap(({ right }) => (right ? [right.text] : [])).join("\n")).toBe(after);
});

test("only the words that differ are marked, and lines that share little are not marked word by word", () => {
  const marked = (parts: { text: string; isMarked: boolean }[] | undefined) => parts?.map((part) => (part.isMarked ? `[${part.text}]` : part.text)).join("");
  const [left, right] = wordMarks('  "description": "Roll dice",', '  "description": "Roll better dice",');
  expect(marked(left)).toBe('  "description": "Roll dice",');
  expect(marked(right)).toBe('  "description": "Roll [better ]dice",');
  expect(wordMarks("one two three", "completely different words")).toEqual([undefined, undefined]);
});
