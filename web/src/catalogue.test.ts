// Every text of the page stands in the catalogue: a text that is written into a component fails here, with its place.
import ts from "typescript";
import { expect, test } from "vitest";
import { english } from "./messages";

const FILES = import.meta.glob<string>(["./**/*.ts", "./**/*.tsx", "!./**/*.test.*", "!./**/*.d.ts"], { query: "?raw", import: "default", eager: true });
// Attributes that a person reads or hears.
const READ = new Set(["label", "title", "description", "placeholder", "alt", "error", "closeLabel", "legend", "message", "summary"]);
const WORD = /\p{L}{2}/u;

// Words that are written into the markup of a file, each with its line.
function literals(name: string, text: string): string[] {
  const file = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const found: string[] = [];
  const note = (node: ts.Node, words: string) => {
    if (WORD.test(words)) found.push(`${name}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1}: ${words.trim()}`);
  };
  // What an expression may put on the page without going through a function.
  const look = (node: ts.Node | undefined): void => {
    if (!node) return;
    if (ts.isStringLiteralLike(node)) note(node, node.text);
    else if (ts.isTemplateExpression(node)) [node.head, ...node.templateSpans.map((span) => span.literal)].forEach((part) => note(part, part.text));
    else if (ts.isConditionalExpression(node)) [node.whenTrue, node.whenFalse].forEach(look);
    else if (ts.isParenthesizedExpression(node)) look(node.expression);
    else if (ts.isBinaryExpression(node) && [ts.SyntaxKind.PlusToken, ts.SyntaxKind.BarBarToken, ts.SyntaxKind.QuestionQuestionToken, ts.SyntaxKind.AmpersandAmpersandToken].includes(node.operatorToken.kind)) {
      [node.left, node.right].forEach(look);
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node)) note(node, node.text);
    if (ts.isJsxExpression(node) && !ts.isJsxAttribute(node.parent)) look(node.expression);
    if (ts.isJsxAttribute(node)) {
      const attribute = node.name.getText();
      const value = node.initializer;
      if (READ.has(attribute) || (attribute.startsWith("aria-") && /label|description|text|roledescription/.test(attribute))) {
        look(value && ts.isJsxExpression(value) ? value.expression : value);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

test("no text is written into a component", () => {
  expect(Object.entries(FILES).flatMap(([name, text]) => (name.endsWith(".tsx") ? literals(name, text) : []))).toEqual([]);
});

test("the rule finds what it is for", () => {
  const wrong = '<><p>Some words</p><i aria-label="Close it" /><b title={busy ? "Wait" : t("x")}>{`${count} tools`}</b></>;';
  expect(literals("wrong.tsx", wrong)).toEqual(["wrong.tsx:1: Some words", "wrong.tsx:1: Close it", "wrong.tsx:1: Wait", "wrong.tsx:1: tools"]);
  expect(literals("right.tsx", '<p className="wrap" data-kind="same">{t("app.title")} · {name} × {"–"}</p>;')).toEqual([]);
});

test("every text of the catalogue is used", () => {
  const code = Object.entries(FILES).flatMap(([name, text]) => (name === "./messages.ts" ? [] : [text])).join("\n");
  // Words of the server are looked up by their group: word("gate", …), or t(`access.scope.${name}`).
  const groups = [/word\(\s*"([\w.]+)"/g, /"(tools\.\w+)"/g, /`([\w.]+)\.\$\{/g].flatMap((form) => [...code.matchAll(form)].map((found) => `${found[1]}.`));
  const unused = Object.keys(english)
    .map((id) => id.split("|")[0] as string)
    .filter((id) => !code.includes(`"${id}"`) && !groups.some((group) => id.startsWith(group)));
  expect(unused).toEqual([]);
});
