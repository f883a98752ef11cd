// What a request has besides its parts: method, content, credentials and further pages, each as a form.
import { Button, Code, Group, NativeSelect, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { type MessageId, t } from "../messages";
import { AuthEditor } from "./auth-editor";
import { addPart, type Body, canAdd, changeRun, type Method, METHODS, PLACES, type Place, placeName, withContentType } from "./http";
import { changeStep, type Recipe, type Step, withoutUnused } from "./model";
import { PagesEditor } from "./pages-editor";

interface Given {
  recipe: Recipe;
  place: number;
  onChange: (recipe: Recipe) => void;
}

export function HttpSettings({ recipe, place, onChange }: Given) {
  const step = recipe.steps[place] as Step;
  const { run } = step;
  return (
    <Stack gap="xs" mt="sm">
      {run.body.kind === "written" && <><Text size="sm">{t("recipe.body.written")}</Text><Code block className="wrap scroll" tabIndex={0}>{run.body.text}</Code></>}
      {run.body.kind === "text" && (
        <Textarea label={t("recipe.body.text")} autosize maxRows={10} value={run.body.text} onChange={(event) => onChange(changeRun(recipe, place, { body: { kind: "text", text: event.currentTarget.value } }))} />
      )}
      <details className="fold">
        <summary>{t("recipe.more")}</summary>
        <Stack gap="xs" mt="xs">
          <Group align="end" gap="xs">
            <NativeSelect label={t("recipe.method")} data={[...METHODS]} value={run.method} onChange={(event) => onChange(changeRun(recipe, place, { method: event.currentTarget.value as Method }))} />
            <NativeSelect
              label={t("recipe.body")}
              data={(run.body.kind === "written" ? [...BODIES, run.body.kind] : BODIES).map((kind) => ({ value: kind, label: t(`recipe.body.${kind}` as MessageId) }))}
              value={run.body.kind}
              onChange={(event) => onChange(changeBody(recipe, place, event.currentTarget.value as Body["kind"]))}
            />
          </Group>
          <NewPart step={step} onAdd={(where, label, value) => onChange(addPart(recipe, place, where, label, value))} />
        </Stack>
      </details>
      <details className="fold">
        <summary>{t("recipe.auth.summary", { type: t(`recipe.auth.${run.auth.type}` as MessageId) })}</summary>
        <AuthEditor auth={run.auth} onChange={(auth) => onChange(changeRun(recipe, place, { auth }))} />
      </details>
      <details className="fold">
        <summary>{t("recipe.pages.summary", { type: t(`recipe.pages.${run.pages.type}` as MessageId) })}</summary>
        <PagesEditor step={step} onChange={(pages) => onChange(changeStep(changeRun(recipe, place, { pages }), place, (one) => ({ ...one, keep: { kind: "all" } })))} />
      </details>
    </Stack>
  );
}

const BODIES: Body["kind"][] = ["none", "json", "form", "text"];
const CONTENT_TYPES: Partial<Record<Body["kind"], string>> = { json: "application/json", form: "application/x-www-form-urlencoded", text: "text/plain" };

// Another kind of content begins empty; its type is said in a header.
function changeBody(recipe: Recipe, place: number, kind: Body["kind"]): Recipe {
  const body: Body = kind === "json" ? { kind, example: {} } : kind === "text" || kind === "written" ? { kind: "text", text: "" } : { kind };
  return withoutUnused(
    changeStep(recipe, place, (step) => {
      const others = step.parts.filter((part) => part.place !== "body" && !(part.place === "header" && part.label.toLowerCase() === "content-type"));
      const type = CONTENT_TYPES[kind];
      const method = kind !== "none" && step.run.method === "GET" ? "POST" : step.run.method;
      return { ...step, parts: type ? withContentType(others, type) : others, run: { ...step.run, body, method } };
    }),
  );
}

function NewPart({ step, onAdd }: { step: Step; onAdd: (where: Place, label: string, value: string) => void }) {
  const [where, setWhere] = useState<Place>("query");
  const [label, setLabel] = useState("");
  const [value, setValue] = useState("");
  const isTaken = where !== "path" && step.parts.some((part) => part.place === where && part.label.toLowerCase() === label.trim().toLowerCase());
  const canUse = where === "path" ? value.trim() !== "" : label.trim() !== "" && !isTaken;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!canUse) return;
        onAdd(where, label.trim(), value);
        setLabel("");
        setValue("");
      }}
    >
      <Text size="sm" fw={600}>{t("recipe.add")}</Text>
      <Group align="end" gap="xs">
        <NativeSelect label={t("recipe.add.where")} data={PLACES.filter((one) => canAdd(step, one)).map((one) => ({ value: one, label: placeName(one) }))} value={where} onChange={(event) => setWhere(event.currentTarget.value as Place)} />
        {where !== "path" && <TextInput label={t("recipe.pair.name")} w={140} value={label} error={isTaken ? t("recipe.add.taken") : undefined} onChange={(event) => setLabel(event.currentTarget.value)} />}
        <TextInput label={t("recipe.pair.value")} w={140} value={value} onChange={(event) => setValue(event.currentTarget.value)} />
        <Button type="submit" variant="default" disabled={!canUse}>{t("recipe.add.do")}</Button>
      </Group>
    </form>
  );
}
