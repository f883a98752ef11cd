// What is kept of an answer: the expression that the server takes, and what it gives in an example.
import { at, type Keep, type Path } from "./model";

export function expressionOf(keep: Keep): string {
  if (keep.kind === "all") return "";
  if (keep.kind === "written") return keep.text;
  if (keep.kind === "element") return `<${keep.name}(?:\\s[^>]*)?>([^<]*)</${keep.name}>`;
  return `$${keep.path.map((word) => (word === "*" ? "[*]" : typeof word === "number" ? `[${word}]` : /^[A-Za-z_]\w*$/.test(word) ? `.${word}` : `['${word.replace(/[\\']/g, "\\$&")}']`)).join("")}`;
}

const WORDS = /\.([A-Za-z_]\w*)|\[(\d+)\]|\[(\*)\]|\['((?:[^'\\]|\\.)*)'\]/y;

// What an expression keeps; one that was not made here is kept as it is written.
export function readExpression(text: string): Keep {
  if (!text) return { kind: "all" };
  const element = /^<([\w.:-]+)\(/.exec(text)?.[1];
  const found: Keep = element ? { kind: "element", name: element } : { kind: "path", path: readPath(text) ?? [] };
  return expressionOf(found) === text ? found : { kind: "written", text };
}

// The path of an expression such as $.a[0]['b c']; null for anything else.
export function readPath(text: string): Path | null {
  if (!text.startsWith("$")) return null;
  const path: Path = [];
  WORDS.lastIndex = 1;
  for (let end = 1; end < text.length; end = WORDS.lastIndex) {
    const found = WORDS.exec(text);
    if (!found) return null;
    path.push(found[2] !== undefined ? Number(found[2]) : (found[1] ?? found[3] ?? (found[4] as string).replace(/\\(.)/g, "$1")));
  }
  return path;
}

// What a kept path gives in an example: with "*" a list.
export function keptOf(value: unknown, path: Path): unknown {
  const star = path.indexOf("*");
  if (star < 0) return at(value, path);
  const list = at(value, path.slice(0, star));
  return Array.isArray(list) ? list.map((one) => keptOf(one, path.slice(star + 1))) : undefined;
}
