// Everything of one step: its place, its name, its parts, how it runs, and what is kept of its answer. List and canvas show the same.
import { Button, Card, Code, Group, Stack, Text, TextInput, Title } from "@mantine/core";
import { type ComponentType, useState } from "react";
import { t } from "../messages";
import { AnswerTree } from "./answer-tree";
import { placeName } from "./http";
import { HttpSettings } from "./http-settings";
import { expressionOf } from "./keep";
import { KINDS, type Run } from "./kinds";
import { type Answer, changeStep, isStepName, type Keep, moveStep, openParts, type Path, type Recipe, removeStep, type Step } from "./model";
import { PartEditor } from "./part-editor";

interface Given {
  recipe: Recipe;
  place: number;
  onChange: (recipe: Recipe) => void;
}

// What a kind of step has besides parts and an answer.
const SETTINGS: Record<Run["kind"], ComponentType<Given>> = { http: HttpSettings };

export function StepEditor({ recipe, place, onChange }: Given) {
  const step = recipe.steps[place] as Step;
  const kind = KINDS[step.run.kind];
  const Settings = SETTINGS[step.run.kind];
  const parts = openParts(step);
  return (
    <Card withBorder component="section" aria-label={step.name}>
      <Group justify="space-between" align="start">
        <div>
          <Title order={4} className="wrap">{place + 1}. {step.name}</Title>
          <Code className="wrap">{kind.summary(step)}</Code>
        </div>
        <Group gap="xs">
          <Button size="compact-sm" variant="default" disabled={place === 0} aria-label={t("recipe.step.up", { name: step.name })} onClick={() => onChange(moveStep(recipe, place, -1))}>↑</Button>
          <Button size="compact-sm" variant="default" disabled={place === recipe.steps.length - 1} aria-label={t("recipe.step.down", { name: step.name })} onClick={() => onChange(moveStep(recipe, place, 1))}>↓</Button>
          <Button size="compact-sm" variant="default" aria-label={t("recipe.step.remove", { name: step.name })} onClick={() => onChange(removeStep(recipe, place))}>✕</Button>
        </Group>
      </Group>
      {recipe.steps.length > 1 && <StepName recipe={recipe} place={place} onChange={onChange} />}
      <Text mt="sm" fw={600}>{t("recipe.vary")}</Text>
      {kind.places.map((where) => {
        const here = parts.filter((part) => part.place === where);
        if (here.length === 0) return null;
        return (
          <Group key={where} gap="xs" mt="xs" role="group" aria-label={placeName(where)}>
            <Text size="sm" w={90}>{placeName(where)}</Text>
            {here.map((part) => <PartEditor key={part.id} recipe={recipe} place={place} part={part} onChange={onChange} />)}
          </Group>
        );
      })}
      <Settings recipe={recipe} place={place} onChange={onChange} />
      <KeepBox step={step} onKeep={(keep) => onChange(changeStep(recipe, place, (one) => ({ ...one, keep })))} />
    </Card>
  );
}

// Later steps and their slots call the step by this name.
function StepName({ recipe, place, onChange }: Given) {
  const step = recipe.steps[place] as Step;
  const [typed, type] = useState<string | null>(null);
  const isWrong = typed !== null && !isStepName(recipe, place, typed);
  return (
    <TextInput
      mt="xs"
      maw={320}
      label={t("recipe.step.name")}
      value={typed ?? step.name}
      error={isWrong ? t("recipe.step.name.wrong") : undefined}
      onChange={(event) => {
        const name = event.currentTarget.value;
        type(name);
        if (isStepName(recipe, place, name)) onChange(changeStep(recipe, place, (one) => ({ ...one, name })));
      }}
      onBlur={() => type(null)}
    />
  );
}

function KeepBox({ step, onKeep }: { step: Step; onKeep: (keep: Keep) => void }) {
  if (!step.answer) return <Text mt="sm" size="sm">{t("recipe.answer.none")}</Text>;
  // With further pages it is the list of all their items that something is kept of.
  const answer: Answer = step.answer.kind === "json" ? { kind: "json", value: KINDS[step.run.kind].outcome(step) } : step.answer;
  const path = step.keep.kind === "path" ? step.keep.path : undefined;
  const number = path?.findIndex((word) => typeof word === "number") ?? -1;
  return (
    <Stack gap="xs" mt="sm">
      <Text fw={600}>{t("recipe.keep")}</Text>
      <AnswerTree
        answer={answer}
        picked={path}
        onPick={(picked: Path) => onKeep(answer.kind === "text" ? { kind: "element", name: String(picked[0]) } : picked.length ? { kind: "path", path: picked } : { kind: "all" })}
      />
      <Group>
        <Button size="compact-sm" variant="default" onClick={() => onKeep({ kind: "all" })}>{t("recipe.keep.all")}</Button>
        {path && number >= 0 && (
          <Button size="compact-sm" variant="default" onClick={() => onKeep({ kind: "path", path: path.map((word, place) => (place === number ? "*" : word)) })}>{t("recipe.keep.each")}</Button>
        )}
        <Text size="sm">{t("recipe.kept")}: <Code>{expressionOf(step.keep) || t("recipe.keep.all")}</Code></Text>
      </Group>
    </Stack>
  );
}
