// The arguments of a call for a person who does not read JSON: name, value, and what the author of the tool says of it.
import { Code, Text } from "@mantine/core";
import { t } from "../messages";
import { Facts } from "./facts";
import { Value } from "./result-view";
import { isSchema } from "./schema-words";

const MAX_SHORT = 200;

export function GivenArguments({ values, texts }: { values: Record<string, unknown>; texts: Readonly<Record<string, string>> }) {
  // In the order of the author.
  const names = Object.keys({ ...texts, ...values }).filter((name) => name in values);
  if (names.length === 0) return <Text>{t("approvals.arguments.none")}</Text>;
  return <Facts label={t("approvals.arguments")} rows={names.map((name) => [name, <><Short value={values[name]} /><FromAuthor text={texts[name]} /></>])} />;
}

// A text of the tool's author, who may write anything.
export function FromAuthor({ text }: { text?: string | undefined }) {
  return text ? <Text size="sm" className="author wrap">{t("approvals.author", { text })}</Text> : null;
}

// What a schema says of each argument.
export function textsOf(schema: Record<string, unknown>): Record<string, string> {
  const named = isSchema(schema.properties) ? Object.entries(schema.properties) : [];
  return Object.fromEntries(named.flatMap(([name, part]) => (isSchema(part) ? [[name, String(part.description ?? "")]] : [])));
}

function Short({ value }: { value: unknown }) {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return text.length > MAX_SHORT || text.includes("\n") ? <Value value={value} /> : <Code className="wrap">{text}</Code>;
}
