// One part of a step: fixed, given by the caller, a secret, or taken from an earlier answer.
import { Button, type ButtonProps, Code, Group, Popover, SegmentedControl, Select, Stack, Text, TextInput } from "@mantine/core";
import { type KeyboardEvent, useState } from "react";
import { t } from "../messages";
import { KINDS } from "./kinds";
import { assign, changeStep, isName, type Json, nameFor, type Part, type Path, type Recipe, type Source, type Step, withoutUnused } from "./model";
import { offersFor } from "./offers";
import { SecretName } from "./secret-name";
import { typedValue } from "./value-types";

interface Given {
  recipe: Recipe;
  place: number;
  part: Part;
  onChange: (recipe: Recipe) => void;
  // What a click does instead of opening the editor, if it says so by true.
  onPress?: () => boolean;
  button?: ButtonProps & { "aria-label"?: string; "data-stop"?: string; tabIndex?: number; onKeyDown?: (event: KeyboardEvent) => void };
}

export function PartEditor({ recipe, place, part, onChange, onPress, button }: Given) {
  const [opened, open] = useState(false);
  const close = () => open(false);
  const press = () => {
    if (onPress?.()) return;
    open(!opened);
  };
  return (
    <Popover opened={opened} onChange={open} trapFocus returnFocus position="bottom-start" width={300} shadow="md">
      <Popover.Target>
        <Button size="compact-md" variant={part.source.kind === "fixed" ? "default" : "filled"} {...button} onClick={press} aria-haspopup="dialog">
          <Text span truncate="end">{shownPart(recipe, part)}</Text>
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={t("recipe.part", { label: part.label || String(part.value) })}>
        {opened && <Fields recipe={recipe} place={place} part={part} onChange={(next) => { onChange(next); close(); }} />}
      </Popover.Dropdown>
    </Popover>
  );
}

// The fields hold what is typed until it is used.
function Fields({ recipe, place, part, onChange }: Omit<Given, "onPress" | "button">) {
  const { source } = part;
  const taken = [...recipe.inputs.map((input) => input.name), ...recipe.steps.map((step) => step.name)];
  const isWhole = typeof part.value === "object" && part.value !== null;
  const [kind, setKind] = useState<Source["kind"]>(source.kind);
  const [name, setName] = useState(source.kind === "input" || source.kind === "secret" ? source.name : nameFor(part.place === "path" ? String(part.value) : part.label, taken));
  const [fixed, setFixed] = useState(String(part.value ?? ""));
  const [output, setOutput] = useState<string | null>(source.kind === "step" ? key(source.step, source.path) : null);
  const { outputs, reason } = offersFor(recipe, place, part);
  const step = recipe.steps[place] as Step;
  const without = KINDS[step.run.kind].remove(step, part);
  const isStep = recipe.steps.some((step) => step.name === name);
  const canSave = kind === "fixed" || kind === "written" || (kind === "step" ? output !== null : isName(name) && !(kind === "input" && isStep));

  function save() {
    if (kind === "fixed") return onChange(fix(recipe, place, part, isWhole ? part.value : fixed));
    if (kind === "written") return onChange(recipe);
    // Secrets are in capitals; one that a stored tool writes otherwise keeps its name.
    const isKnown = source.kind === kind && source.kind === "secret" && source.name === name;
    if (kind !== "step") return onChange(assign(recipe, place, part.id, { kind, name: kind === "secret" && !isKnown ? name.toUpperCase() : name }));
    const found = outputs.find((one) => key(one.step, one.path) === output);
    if (found) onChange(assign(recipe, place, part.id, { kind, step: found.step, path: found.path }));
  }

  // A list may be given by the caller; an object has no form for one who never saw JSON, and no secret is either.
  const kinds: Source["kind"][] = ["fixed"];
  if (!isWhole || Array.isArray(part.value)) kinds.push("input");
  if (!isWhole) kinds.push("secret");
  if (place > 0) kinds.push("step");
  if (source.kind === "written") kinds.unshift("written");
  const labels = { fixed: "recipe.fixed", input: "recipe.input", secret: "recipe.secret", step: "recipe.fromStep", written: "recipe.written" } as const;
  return (
    <Stack gap="xs">
      <SegmentedControl
        orientation="vertical"
        aria-label={t("recipe.part", { label: part.label || String(part.value) })}
        value={kind}
        onChange={(value) => setKind(value as Source["kind"])}
        data={kinds.map((value) => ({ value, label: t(labels[value]) }))}
      />
      {kind === "written" && source.kind === "written" && <Code block className="wrap">{source.text}</Code>}
      {kind === "fixed" && (isWhole ? <Text size="sm">{t("recipe.fixed.whole")}</Text> : <TextInput label={t("recipe.value")} value={fixed} onChange={(event) => setFixed(event.currentTarget.value)} />)}
      {kind === "input" && (
        <TextInput label={t("recipe.input.name")} value={name} error={!isName(name) ? t("recipe.name.wrong") : isStep ? t("recipe.name.step") : undefined} onChange={(event) => setName(event.currentTarget.value)} />
      )}
      {kind === "secret" && <SecretName label={t("recipe.secret.name")} value={name} onChange={setName} inPopover />}
      {kind === "step" && (
        <Select
          label={t("recipe.output")}
          searchable
          disabled={outputs.length === 0}
          description={reason || undefined}
          comboboxProps={{ withinPortal: false }}
          data={outputs.map((one) => ({ value: key(one.step, one.path), label: `${nameOf(recipe, one.step)}: ${one.path.join(".") || t("recipe.output.whole")} (${shown(one.value)})` }))}
          value={output}
          onChange={setOutput}
        />
      )}
      <Group gap="xs">
        <Button onClick={save} disabled={!canSave}>{t("recipe.use")}</Button>
        {without && <Button variant="default" onClick={() => onChange(withoutUnused(changeStep(recipe, place, () => without)))}>{t("recipe.part.remove")}</Button>}
      </Group>
    </Stack>
  );
}

function fix(recipe: Recipe, place: number, part: Part, value: Json): Recipe {
  const typed = part.at && typeof value === "string" && typeof part.value !== "string" ? typedValue(value) : value;
  return changeStep(assign(recipe, place, part.id, { kind: "fixed" }), place, (step) => ({
    ...step,
    parts: step.parts.map((one) => (one.id === part.id ? { ...one, value: typed } : one)),
  }));
}

function key(step: string, path: Path): string {
  return JSON.stringify([step, path]);
}

export function nameOf(recipe: Recipe, id: string): string {
  return recipe.steps.find((step) => step.id === id)?.name ?? id;
}

export function shown(value: Json): string {
  if (Array.isArray(value)) return `[${value.length}]`;
  return typeof value === "object" && value !== null ? "{…}" : String(value).slice(0, 30);
}

// A part with its value, as it stands on its button.
export function shownPart(recipe: Recipe, part: Part): string {
  const { source } = part;
  const name = part.place === "path" ? "" : `${part.label} = `;
  if (source.kind === "fixed") return `${name}${(typeof part.value === "object" && part.value !== null ? shown(part.value) : String(part.value ?? "")) || "–"}`;
  if (source.kind === "input") return `${name}{${source.name}}`;
  if (source.kind === "secret") return name + t("recipe.secret.shown", { name: source.name });
  if (source.kind === "written") return name + source.text;
  return `${name}← ${[nameOf(recipe, source.step), ...source.path].join(".")}`;
}
