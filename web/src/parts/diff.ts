// The lines and words in which two texts differ.
export interface DiffLine {
  kind: "same" | "removed" | "added";
  text: string;
}

// Beyond this the middle is shown as replaced: comparing takes the product of both lengths.
const MAX_LINES = 2_000;

export function diffLines(before: string, after: string): DiffLine[] {
  return diffParts(before.split("\n"), after.split("\n"));
}

function diffParts(left: string[], right: string[]): DiffLine[] {
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

export interface Side {
  number: number;
  text: string;
}
export interface Row {
  left: Side | null;
  right: Side | null;
  isSame: boolean;
}

// Both texts as rows of two columns: of a stretch that was replaced, the first line stands beside the first, and so on.
export function alignLines(before: string, after: string): Row[] {
  const rows: Row[] = [];
  let [removed, added]: [Side[], Side[]] = [[], []];
  let [left, right] = [0, 0];
  function close() {
    for (let place = 0; place < Math.max(removed.length, added.length); place += 1) {
      rows.push({ left: removed[place] ?? null, right: added[place] ?? null, isSame: false });
    }
    [removed, added] = [[], []];
  }
  for (const { kind, text } of diffLines(before, after)) {
    if (kind !== "added") left += 1;
    if (kind !== "removed") right += 1;
    if (kind === "removed") removed.push({ number: left, text });
    else if (kind === "added") added.push({ number: right, text });
    else {
      close();
      rows.push({ left: { number: left, text }, right: { number: right, text }, isSame: true });
    }
  }
  close();
  return rows;
}

// A longer line is marked as a whole.
const MAX_WORDS = 400;
// Two lines that share less than this are not two versions of one line; marking nearly every word would only confuse.
const MIN_SHARED = 0.3;

export interface WordPart {
  text: string;
  isMarked: boolean;
}

// The two lines in parts, those that differ marked; undefined where no marks help.
export function wordMarks(before: string, after: string): [WordPart[], WordPart[]] | [undefined, undefined] {
  const [left, right] = [wordsOf(before), wordsOf(after)];
  if (left.length > MAX_WORDS || right.length > MAX_WORDS) return [undefined, undefined];
  const parts = diffParts(left, right);
  const shared = parts.filter((part) => part.kind === "same").reduce((sum, part) => sum + part.text.trim().length, 0);
  if (shared < MIN_SHARED * Math.min(before.trim().length, after.trim().length)) return [undefined, undefined];
  const side = (own: "removed" | "added") => joined(parts.filter((part) => part.kind === "same" || part.kind === own));
  return [side("removed"), side("added")];
}

function wordsOf(line: string): string[] {
  return line.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

function joined(parts: DiffLine[]): WordPart[] {
  const found: WordPart[] = [];
  for (const { kind, text } of parts) {
    const last = found.at(-1);
    if (last && last.isMarked === (kind !== "same")) last.text += text;
    else found.push({ text, isMarked: kind !== "same" });
  }
  return found;
}
