// Two texts side by side: lines that belong together stand in one row, and words that differ are marked. Where there is no room for two
// columns the rows are laid out one below the other. A sign says which text a line is of, besides the colour.
import { Button } from "@mantine/core";
import { useMemo, useState } from "react";
import { t } from "../messages";
import { alignLines, type Row, type Side, wordMarks } from "./diff";

const SHOWN = 2_000;
// Lines that are the same are shown around what differs; the others are folded.
const AROUND = 3;
const MIN_FOLDED = 4;

export function DiffView({ before, after, names }: { before: string; after: string; names: [string, string] }) {
  const rows = useMemo(() => alignLines(before, after).slice(0, SHOWN), [before, after]);
  const parts = useMemo(() => fold(rows), [rows]);
  const [opened, open] = useState<ReadonlySet<number>>(new Set());
  return (
    <div className="diff scroll" tabIndex={0} role="group" aria-label={t("diff.label", { before: names[0], after: names[1] })}>
      <div className="diff-row diff-head" aria-hidden>
        <div>{names[0]}</div>
        <div>{names[1]}</div>
      </div>
      {parts.map((part) =>
        part.isFolded && !opened.has(part.from) ? (
          <Button key={part.from} className="diff-fold" variant="default" size="compact-xs" onClick={() => open(new Set([...opened, part.from]))}>
            {t("diff.folded", { count: part.rows.length })}
          </Button>
        ) : (
          part.rows.map((row, place) => <Line key={part.from + place} row={row} names={names} />)
        ),
      )}
    </div>
  );
}

function Line({ row, names }: { row: Row; names: [string, string] }) {
  const { left, right } = row;
  if (row.isSame) {
    return (
      <div className="diff-row" data-kind="same">
        <Cell side={left} />
        <Cell side={right} isSecond />
      </div>
    );
  }
  const [one, other] = left && right ? wordMarks(left.text, right.text) : [undefined, undefined];
  return (
    <div className="diff-row" data-kind="changed">
      <Cell side={left} kind="removed" words={one} title={t("diff.only", { name: names[0] })} />
      <Cell side={right} kind="added" words={other} title={t("diff.only", { name: names[1] })} />
    </div>
  );
}

interface CellProps {
  side: Side | null;
  kind?: "removed" | "added";
  words?: { text: string; isMarked: boolean }[] | undefined;
  title?: string;
  isSecond?: boolean;
}

function Cell({ side, kind, words, title, isSecond = false }: CellProps) {
  if (!side) return <div className="diff-cell diff-empty" />;
  const Mark = kind === "removed" ? "del" : "ins";
  return (
    <div className="diff-cell" data-kind={kind ?? "same"} data-second={isSecond || undefined} aria-hidden={isSecond || undefined} title={title}>
      <span className="diff-number" aria-hidden>{side.number}</span>
      {kind ? <span className="diff-sign" role="img" aria-label={title}>{kind === "removed" ? "−" : "+"}</span> : <span className="diff-sign" aria-hidden> </span>}
      <span className="diff-text">{words ? words.map((part, place) => (part.isMarked ? <Mark key={place}>{part.text}</Mark> : part.text)) : side.text}</span>
    </div>
  );
}

interface Part {
  from: number;
  rows: Row[];
  isFolded: boolean;
}

// Runs of rows: those near a difference, and those far from any.
function fold(rows: Row[]): Part[] {
  const isNear = new Uint8Array(rows.length);
  rows.forEach((row, place) => {
    if (!row.isSame) isNear.fill(1, Math.max(0, place - AROUND), place + AROUND + 1);
  });
  const parts: Part[] = [];
  rows.forEach((row, place) => {
    const isFolded = !isNear[place];
    const last = parts.at(-1);
    if (last && last.isFolded === isFolded) last.rows.push(row);
    else parts.push({ from: place, rows: [row], isFolded });
  });
  return parts.map((part) => (part.rows.length < MIN_FOLDED ? { ...part, isFolded: false } : part));
}
