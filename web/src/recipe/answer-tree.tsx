// An example answer whose values can be clicked: to keep one, or to hand one on.
import { Button, Code, Text } from "@mantine/core";
import type { Answer, Path } from "./model";

const MOST_ROWS = 300;

interface Given {
  answer: Answer;
  onPick: (path: Path) => void;
  picked?: Path | undefined;
  // Only these values can be picked; the others show where they stand.
  isOffered?: (value: unknown) => boolean;
}

export function AnswerTree({ answer, onPick, picked, isOffered = () => true }: Given) {
  if (answer.kind === "text") return <ElementList text={answer.text} onPick={(name) => onPick([name])} />;
  const rows: { path: Path; value: unknown; depth: number }[] = [];
  collect(answer.value, [], 0, rows);
  return (
    <ul className="tree scroll">
      {rows.slice(0, MOST_ROWS).map(({ path, value, depth }) => (
        <li key={JSON.stringify(path)} style={{ paddingInlineStart: `${depth}rem` }}>
          {isOffered(value) ? (
            <Button size="compact-sm" variant={same(path, picked) ? "filled" : "default"} onClick={() => onPick(path)} aria-pressed={same(path, picked)} justify="start">
              {path.length === 0 ? "$" : String(path.at(-1))}: {shown(value)}
            </Button>
          ) : (
            <Text span size="sm">{path.length === 0 ? "$" : String(path.at(-1))}: {shown(value)}</Text>
          )}
        </li>
      ))}
      {rows.length > MOST_ROWS && <li><Text size="sm">… {rows.length - MOST_ROWS}</Text></li>}
    </ul>
  );
}

function collect(value: unknown, path: Path, depth: number, rows: { path: Path; value: unknown; depth: number }[]): void {
  if (rows.length > MOST_ROWS * 2) return;
  rows.push({ path, value, depth });
  if (Array.isArray(value)) value.slice(0, 3).forEach((one, place) => collect(one, [...path, place], depth + 1, rows));
  else if (typeof value === "object" && value !== null) Object.entries(value).forEach(([key, one]) => collect(one, [...path, key], depth + 1, rows));
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return `[${value.length}]`;
  if (typeof value === "object" && value !== null) return "{…}";
  const text = String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function same(one: Path, other: Path | undefined): boolean {
  return other !== undefined && JSON.stringify(one) === JSON.stringify(other);
}

// The elements of XML that hold text alone.
function ElementList({ text, onPick }: { text: string; onPick: (name: string) => void }) {
  const names = [...new Set([...text.matchAll(/<([A-Za-z_][\w.:-]*)(?:\s[^>]*)?>([^<]*\S[^<]*)<\/\1>/g)].map((found) => `${found[1]}\u0000${found[2]?.trim()}`))];
  if (names.length === 0) return <Code block className="wrap scroll">{text.slice(0, 5_000)}</Code>;
  return (
    <ul className="tree scroll">
      {names.slice(0, MOST_ROWS).map((found) => {
        const [name = "", value = ""] = found.split("\u0000");
        return <li key={found}><Button size="compact-sm" variant="default" onClick={() => onPick(name)}>{name}: {shown(value)}</Button></li>;
      })}
    </ul>
  );
}
