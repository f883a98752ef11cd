// The arguments of a call as a form and as JSON: side by side where there is room, else one at a time. Each follows the other.
// JSON that cannot be read yet stays as it was typed; the form then waits, so that neither overwrites the other.
import { Alert, Button, Group, SegmentedControl, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { t } from "../messages";
import { isTooLarge } from "../schema-size";

const SchemaForm = lazy(() => import("./schema-form"));
const JsonEditor = lazy(() => import("./json-editor"));

export type Arguments = Record<string, unknown>;
type View = "form" | "json";

export interface ArgumentsState {
  values: Arguments;
  text: string;
  // Why the text is not the values; empty if it is.
  mistake: string;
}

export function argumentsOf(values: Arguments): ArgumentsState {
  return { values, text: JSON.stringify(values, null, 2), mistake: "" };
}

// What a person typed as JSON; the values stay as they were as long as it cannot be read.
export function typed(before: ArgumentsState, text: string): ArgumentsState {
  try {
    const found: unknown = JSON.parse(text);
    if (typeof found !== "object" || found === null || Array.isArray(found)) return { ...before, text, mistake: t("tool.json.object") };
    return { values: found as Arguments, text, mistake: "" };
  } catch (problem) {
    return { ...before, text, mistake: (problem as Error).message };
  }
}

// `given` counts how often arguments came from elsewhere, such as the history: then the form is made anew. `missing` are the paths
// of values that a person has to type again; the first of them gets the focus.
export function ArgumentsEditor(given: {
  schema: Record<string, unknown>;
  state: ArgumentsState;
  change: (state: ArgumentsState) => void;
  given: number;
  missing: readonly string[][];
}) {
  const { schema, state, change, missing } = given;
  const tooLarge = isTooLarge(schema);
  const isWide = useMediaQuery("(min-width: 62em)", true, { getInitialValueInEffect: false });
  const [chosen, choose] = useState<View>("form");
  const isTyping = useRef(false);
  const form = useRef<HTMLDivElement>(null);
  const takesArguments = Object.keys((schema.properties as object | undefined) ?? {}).length > 0 || schema.additionalProperties !== false;
  const shows = (view: View) => (tooLarge ? view === "json" : isWide || chosen === view);

  useEffect(() => {
    if (missing.length === 0) return;
    choose("form");
    // The form is loaded when it is first shown.
    const id = `root_${missing[0]?.join("_")}`;
    const find = () => form.current?.querySelector<HTMLElement>(`#${CSS.escape(id)}`);
    const watcher = new MutationObserver(focus);
    function focus() {
      const field = find();
      if (!field) return;
      watcher.disconnect();
      field.focus();
    }
    if (form.current) watcher.observe(form.current, { childList: true, subtree: true });
    focus();
    return () => watcher.disconnect();
  }, [missing]);

  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={3}>{t("tool.arguments")}</Title>
        {!tooLarge && !isWide && (
          <SegmentedControl
            aria-label={t("tool.arguments.view")}
            data={[{ value: "form", label: t("tool.form") }, { value: "json", label: t("tool.json") }]}
            value={chosen}
            onChange={(next) => choose(next as View)}
          />
        )}
      </Group>
      {tooLarge && <Alert variant="outline">{t("tool.form.tooLarge")}</Alert>}
      <SimpleGrid cols={isWide && !tooLarge ? 2 : 1} spacing="lg">
        {shows("form") && (
          <div ref={form}>
            {state.mistake && <Waiting reset={() => change(argumentsOf(state.values))} />}
            {takesArguments ? (
              <Suspense fallback={<Text>{t("app.loading")}</Text>}>
                <SchemaForm
                  key={given.given}
                  schema={schema}
                  value={state.values}
                  disabled={state.mistake !== ""}
                  onChange={(next, byPerson) => {
                    // Defaults that the form fills in while a person types JSON would be typed over.
                    if (byPerson || !isTyping.current) change(argumentsOf(next));
                    if (byPerson) isTyping.current = false;
                  }}
                />
              </Suspense>
            ) : (
              <Text>{t("tool.arguments.none")}</Text>
            )}
          </div>
        )}
        {shows("json") && (
          <div>
            {isWide && !tooLarge && <Text size="sm" fw={600} mb={4} aria-hidden>{t("tool.json")}</Text>}
            <Suspense fallback={<Text>{t("app.loading")}</Text>}>
              <JsonEditor
                value={state.text}
                label={t("tool.arguments.json")}
                onChange={(text) => {
                  if (text === state.text) return;
                  isTyping.current = true;
                  change(typed(state, text));
                }}
              />
            </Suspense>
            {state.mistake && <Text role="alert" size="sm" mt={4} className="wrap" c="var(--mantine-color-error)">{t("tool.json.invalid", { reason: state.mistake })}</Text>}
          </div>
        )}
      </SimpleGrid>
    </Stack>
  );
}

// Says that a form waits for the JSON beside it.
export function Waiting({ reset }: { reset: () => void }) {
  return (
    <Alert role="status" variant="outline" color="orange" mb="sm">
      <Text c="var(--mantine-color-text)">{t("tool.json.first")}</Text>
      <Button mt="xs" size="compact-sm" variant="default" onClick={reset}>{t("tool.json.reset")}</Button>
    </Alert>
  );
}
