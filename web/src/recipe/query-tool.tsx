// A tool that asks a database: one statement, whose parameters are what the caller gives.
import { Checkbox, NativeSelect, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { type MessageId, t } from "../messages";
import { namesIn, problemsOfHead, queryDocument, RETURNS, type Query } from "./document";
import { Inputs } from "./inputs";
import { EMPTY, newInput, type Recipe } from "./model";
import { type Origin, Save } from "./save";

const NOTHING: Query = { database: "", statement: "", write: false, returns: "rows" };

export default function QueryTool({ start = EMPTY, asked = NOTHING, origin }: { start?: Recipe; asked?: Query; origin?: Origin | undefined }) {
  const [recipe, setRecipe] = useState<Recipe>(start);
  const [query, setQuery] = useState<Query>(asked);
  const set = (change: Partial<Query>) => setQuery({ ...query, ...change });
  function write(statement: string) {
    set({ statement });
    // What was said of a parameter stays while it is named.
    setRecipe({ ...recipe, inputs: namesIn(statement).map((name) => recipe.inputs.find((input) => input.name === name) ?? newInput(name)) });
  }
  const missing = [...(query.database.trim() ? [] : [t("recipe.query.needsDatabase")]), ...(query.statement.trim() ? [] : [t("recipe.query.needsStatement")])];
  return (
    <Stack gap="md">
      <Text>{t("recipe.query.help")}</Text>
      <TextInput label={t("recipe.query.database")} description={t("recipe.query.database.help")} value={query.database} onChange={(event) => set({ database: event.currentTarget.value })} />
      <Textarea label={t("recipe.query.statement")} description={t("recipe.query.statement.help")} autosize minRows={3} maxRows={16} value={query.statement} onChange={(event) => write(event.currentTarget.value)} />
      <NativeSelect label={t("recipe.query.returns")} data={RETURNS.map((one) => ({ value: one, label: t(`recipe.query.returns.${one}` as MessageId) }))} value={query.returns} onChange={(event) => set({ returns: event.currentTarget.value as Query["returns"] })} />
      <Checkbox label={t("recipe.query.write")} checked={query.write} onChange={(event) => set({ write: event.currentTarget.checked })} />
      <Inputs recipe={recipe} onChange={setRecipe} />
      <Save recipe={recipe} onChange={setRecipe} document={queryDocument(recipe, query)} problems={[...missing, ...problemsOfHead(recipe)]} origin={origin} />
    </Stack>
  );
}
