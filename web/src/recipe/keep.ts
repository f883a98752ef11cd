// What is kept of an answer: the expression that the server takes, and what it gives in an example.
import { at, type Keep, type Path } from "./model";

export function expressionOf(keep: Keep): string {
  if (keep.kind === "all") return "";
  if (keep.kind === "element") return `<${keep.name}(?:\\s[^>]*)?>([^<]*)</${keep.name}>`;
  return `$${keep.path.map((word) => (word === "*" ? "[*]" : typeof word === "number" ? `[${word}]` : /^[A-Za-z_]\w*$/.test(word) ? `.${word}` : `['${word.replace(/[\\']/g, "\\$&")}']`)).join("")}`;
}

// What a kept path gives in an example: with "*" a list.
export function keptOf(value: unknown, path: Path): unknown {
  const star = path.indexOf("*");
  if (star < 0) return at(value, path);
  const list = at(value, path.slice(0, star));
  return Array.isArray(list) ? list.map((one) => keptOf(one, path.slice(star + 1))) : undefined;
}
