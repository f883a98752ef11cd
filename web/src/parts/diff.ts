// The lines in which two texts differ.
export interface DiffLine {
  kind: "same" | "removed" | "added";
  text: string;
}

// Beyond this the middle is shown as replaced: comparing takes the product of both lengths.
const MAX_LINES = 2_000;

export function diffLines(before: string, after: string): DiffLine[] {
  const [left, right] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start += 1;
  let end = 0;
  while (end < left.length - start && end < right.length - start && left.at(-1 - end) === right.at(-1 - end)) end += 1;
  const same = (lines: string[]): DiffLine[] => lines.map((text) => ({ kind: "same", text }));
  return [
    ...same(left.slice(0, start)),
    ...middle(left.slice(start, left.length - end), right.slice(start, right.length - end)),
    ...same(left.slice(left.length - end)),
  ];
}

// The longest common subsequence, by the table that everybody knows.
function middle(left: string[], right: string[]): DiffLine[] {
  if (left.length > MAX_LINES || right.length > MAX_LINES) {
    return [...left.map((text) => ({ kind: "removed" as const, text })), ...right.map((text) => ({ kind: "added" as const, text }))];
  }
  const width = right.length + 1;
  const table = new Uint32Array((left.length + 1) * width);
  const at = (row: number, column: number) => table[row * width + column] as number;
  for (let row = left.length - 1; row >= 0; row -= 1) {
    for (let column = right.length - 1; column >= 0; column -= 1) {
      table[row * width + column] = left[row] === right[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < left.length || column < right.length) {
    if (row < left.length && column < right.length && left[row] === right[column]) {
      lines.push({ kind: "same", text: left[row] as string });
      row += 1;
      column += 1;
    } else if (column >= right.length || (row < left.length && at(row + 1, column) >= at(row, column + 1))) {
      lines.push({ kind: "removed", text: left[row] as string });
      row += 1;
    } else {
      lines.push({ kind: "added", text: right[column] as string });
      column += 1;
    }
  }
  return lines;
}
