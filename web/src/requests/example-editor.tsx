// An example as a form: a value for each input and each output. The same stands beside it as JSON, and each follows the other.
import { Button, Group, NativeSelect, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { t, word } from "../messages";
import { argumentsOf, type ArgumentsState, typed, Waiting } from "../parts/arguments-editor";
import { type Field, fitsType, readValue, showValue, type Side, type Values } from "./example";

const JsonEditor = lazy(() => import("../parts/json-editor"));

interface Given {
  number: number;
  inputs: Field[];
  outputs: Field[];
  state: ArgumentsState;
  change: (state: ArgumentsState) => void;
  remove?: (() => void) | undefined;
}

export function ExampleEditor({ number, inputs, outputs, state, change, remove }: Given) {
  const side = (name: Side) => (state.values[name] ?? {}) as Values;
  function set(name: Side, field: string, value: unknown) {
    const { [field]: _, ...others } = side(name);
    change(argumentsOf({ input: side("input"), output: side("output"), [name]: value === undefined ? others : { ...side(name), [field]: value } }));
  }
  const rows = (name: Side, fields: Field[]) => {
    const named = fields.filter((field) => field.name.trim());
    if (named.length === 0) return <Text size="sm">{t(`requests.example.${name}.none`)}</Text>;
    return named.map((field) => <Row key={field.key} field={field} value={side(name)[field.name]} disabled={state.mistake !== ""} onChange={(value) => set(name, field.name, value)} />);
  };
  return (
    <fieldset>
      <legend>{t("requests.example", { number })}</legend>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="lg">
        <Stack gap="xs">
          {state.mistake && <Waiting reset={() => change(argumentsOf(state.values))} />}
          <Text size="sm" fw={600}>{t("requests.example.input")}</Text>
          {rows("input", inputs)}
          <Text size="sm" fw={600}>{t("requests.example.output")}</Text>
          {rows("output", outputs)}
        </Stack>
        <div>
          <Text size="sm" fw={600} mb={4} aria-hidden>{t("tool.json")}</Text>
          <Suspense fallback={<Text>{t("app.loading")}</Text>}>
            <JsonEditor value={state.text} label={t("requests.example.json", { number })} onChange={(text) => { if (text !== state.text) change(typed(state, text)); }} />
          </Suspense>
          {state.mistake && <Text role="alert" size="sm" mt={4} className="wrap" c="var(--mantine-color-error)">{t("tool.json.invalid", { reason: state.mistake })}</Text>}
        </div>
      </SimpleGrid>
      {remove && <Group mt="xs"><Button size="compact-sm" variant="default" onClick={remove}>{t("requests.example.remove", { number })}</Button></Group>}
    </fieldset>
  );
}

const MANY_LINES = new Set(["string", "array", "object"]);

// One value: what was typed stays as it was typed while it means the value.
function Row({ field: { name, type }, value, disabled, onChange }: { field: Field; value: unknown; disabled: boolean; onChange: (value: unknown) => void }) {
  const [text, setText] = useState("");
  const isTyped = JSON.stringify(readValue(text, type)) === JSON.stringify(value);
  const shown = isTyped ? text : showValue(value, type);
  const label = t("requests.example.field", { name, type: word("form.type", type) });
  if (shown === null) return <TextInput label={label} description={t("requests.example.asJson")} value={JSON.stringify(value)} readOnly />;
  const given = { label, disabled, value: shown, error: fitsType(value, type) ? undefined : t("form.type", { type: word("form.type", type) }) };
  const set = (next: string) => {
    setText(next);
    onChange(readValue(next, type));
  };
  if (type === "boolean") {
    const choices = [{ value: "", label: "–" }, { value: "true", label: t("form.yes") }, { value: "false", label: t("form.no") }];
    return <NativeSelect {...given} data={choices} onChange={(event) => set(event.currentTarget.value)} />;
  }
  if (!MANY_LINES.has(type)) return <TextInput {...given} inputMode={type === "integer" ? "numeric" : "decimal"} onChange={(event) => set(event.currentTarget.value)} />;
  const help = type === "array" ? t("requests.example.lines") : type === "object" ? t("requests.example.pairs") : undefined;
  return <Textarea {...given} description={help} autosize maxRows={8} onChange={(event) => set(event.currentTarget.value)} />;
}
