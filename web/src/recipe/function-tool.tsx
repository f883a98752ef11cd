// A tool that is a function of the host program: chosen by its key, with what the caller gives declared by form.
import { Button, Group, NativeSelect, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { read } from "../api/client";
import { t } from "../messages";
import { Failure } from "../parts/failure";
import { functionDocument, problemsOfHead } from "./document";
import { Inputs } from "./inputs";
import { EMPTY, type Recipe } from "./model";
import { type Origin, Save } from "./save";

interface Registered {
  key: string;
  description: string;
}

export default function FunctionTool({ start = EMPTY, functionKey = "", origin }: { start?: Recipe; functionKey?: string; origin?: Origin | undefined }) {
  const found = useQuery({ queryKey: ["functions"], queryFn: ({ signal }) => read<{ functions: Registered[] }>("/ui/functions", {}, signal) });
  const [recipe, setRecipe] = useState<Recipe>(start);
  const [key, setKey] = useState(functionKey);
  if (found.error) return <Failure message={found.error.message} retry={() => void found.refetch()} />;
  if (!found.data) return <Text role="status">{t("app.loading")}</Text>;
  const { functions } = found.data;
  if (functions.length === 0) return <Text>{t("recipe.function.none")}</Text>;
  const chosen = functions.find((one) => one.key === key);
  const problems = [...(chosen ? [] : [t("recipe.function.choose")]), ...problemsOfHead(recipe)];
  return (
    <Stack gap="md">
      <Text>{t("recipe.function.help")}</Text>
      <Text>{t("recipe.function.code")}</Text>
      <Group align="end">
        <NativeSelect label={t("recipe.function")} description={chosen?.description || undefined} data={["", ...functions.map((one) => one.key)]} value={key} onChange={(event) => setKey(event.currentTarget.value)} />
        {chosen?.description && !recipe.description && <Button variant="default" onClick={() => setRecipe({ ...recipe, description: chosen.description })}>{t("recipe.function.useText")}</Button>}
      </Group>
      <Inputs recipe={recipe} onChange={setRecipe} isFree />
      <Save recipe={recipe} onChange={setRecipe} document={functionDocument(recipe, key)} problems={problems} origin={origin} />
    </Stack>
  );
}
