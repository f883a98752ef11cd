// What the caller of a tool gives: its name, its type, and what it means.
import { Button, Card, Checkbox, Group, Select, Stack, Text, Textarea, TextInput, Title } from "@mantine/core";
import { useState } from "react";
import { t } from "../messages";
import { type Input, type InputType, isName, newInput, type Recipe } from "./model";

const TYPES: InputType[] = ["string", "integer", "number", "boolean", "array"];

// Where no part of a request asks for inputs, the person adds them by name.
export function Inputs({ recipe, onChange, isFree = false }: { recipe: Recipe; onChange: (recipe: Recipe) => void; isFree?: boolean }) {
  const [name, setName] = useState("");
  const canAdd = isName(name) && !recipe.inputs.some((input) => input.name === name);
  const set = (name: string, change: Partial<Input>) => onChange({ ...recipe, inputs: recipe.inputs.map((input) => (input.name === name ? { ...input, ...change } : input)) });
  return (
    <Stack gap="xs">
      <Title order={3}>{t("recipe.inputs")}</Title>
      {recipe.inputs.length === 0 && <Text>{t(isFree ? "recipe.inputs.free" : "recipe.inputs.none")}</Text>}
      {recipe.inputs.map((input) => (
        <Card key={input.name} withBorder component="section" aria-label={input.name}>
          <Group align="end">
            <Text fw={600} w={120} className="wrap">{input.name}</Text>
            {input.schema ? <Text size="sm">{t("recipe.input.kept")}</Text> : <Select label={t("recipe.input.type")} w={150} allowDeselect={false} data={TYPES.map((type) => ({ value: type, label: t(`recipe.type.${type}`) }))} value={input.type} onChange={(type) => set(input.name, { type: type as InputType })} />}
            <Textarea autosize maxRows={6} label={t("recipe.input.description")} style={{ flex: 1, minWidth: "12rem" }} value={input.description} onChange={(event) => set(input.name, { description: event.currentTarget.value })} />
            <Checkbox label={t("recipe.input.required")} checked={input.required} onChange={(event) => set(input.name, { required: event.currentTarget.checked })} />
            {input.type === "string" && !input.schema && (
              <TextInput label={t("recipe.input.choices")} value={input.choices.join(", ")} onChange={(event) => set(input.name, { choices: event.currentTarget.value.split(",").map((word) => word.trim()).filter(Boolean) })} />
            )}
            {input.type === "array" && (
              <Select label={t("recipe.input.items")} w={150} allowDeselect={false} data={TYPES.slice(0, -1).map((type) => ({ value: type, label: t(`recipe.type.${type}`) }))} value={input.items} onChange={(items) => set(input.name, { items: items as InputType })} />
            )}
            {(isFree || input.isFree) && <Button variant="default" aria-label={t("recipe.pair.remove", { name: input.name })} onClick={() => onChange({ ...recipe, inputs: recipe.inputs.filter((one) => one !== input) })}>✕</Button>}
          </Group>
        </Card>
      ))}
      {isFree && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (!canAdd) return;
            onChange({ ...recipe, inputs: [...recipe.inputs, newInput(name)] });
            setName("");
          }}
        >
          <Group align="end">
            <TextInput label={t("recipe.inputs.name")} value={name} error={name && !canAdd ? t("recipe.name.wrong") : undefined} onChange={(event) => setName(event.currentTarget.value)} />
            <Button type="submit" variant="default" disabled={!canAdd}>{t("recipe.inputs.add")}</Button>
          </Group>
        </form>
      )}
    </Stack>
  );
}
