// How a request asks for further pages: where their list and the next one stand is clicked in an example answer.
import { Button, Checkbox, Code, Group, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { type MessageId, t } from "../messages";
import { AnswerTree } from "./answer-tree";
import { needsNext, needsParameter, ONE_PAGE, type Pages } from "./http";
import { expressionOf } from "./keep";
import type { Path, Step } from "./model";
import { typeOf } from "./value-types";

const TYPES: Pages["type"][] = ["none", "page", "offset", "cursor", "link", "url"];

export function PagesEditor({ step, onChange }: { step: Step; onChange: (pages: Pages) => void }) {
  const { pages, body } = step.run;
  const { type } = pages;
  const set = (change: Partial<Pages>) => onChange({ ...pages, ...change });
  const parameters = step.parts.filter((part) => part.place === "query").map((part) => part.label);
  return (
    <Stack gap="xs">
      <NativeSelect
        label={t("recipe.pages.type")}
        description={t(`recipe.pages.${type}.help` as MessageId)}
        data={TYPES.map((one) => ({ value: one, label: t(`recipe.pages.${one}` as MessageId) }))}
        value={type}
        onChange={(event) => {
          const next = event.currentTarget.value as Pages["type"];
          onChange(next === "none" ? ONE_PAGE : { ...pages, type: next, parameter: pages.parameter || parameters.find((one) => LIKELY[next]?.test(one)) || "" });
        }}
      />
      {needsParameter(type) && (
        <Group align="end" gap="xs">
          <TextInput label={t("recipe.pages.parameter")} withAsterisk value={pages.parameter} onChange={(event) => set({ parameter: event.currentTarget.value })} />
          {body.kind === "json" && (
            <NativeSelect label={t("recipe.pages.in")} data={[{ value: "query", label: t("recipe.place.query") }, { value: "body", label: t("recipe.place.body") }]} value={pages.in} onChange={(event) => set({ in: event.currentTarget.value as Pages["in"] })} />
          )}
        </Group>
      )}
      {needsNext(type) && <Place label={t("recipe.pages.next")} step={step} path={pages.next} onPick={(next) => set({ next })} />}
      {type !== "none" && (
        <>
          <Place label={t("recipe.pages.items")} step={step} path={pages.items} onPick={(items) => set({ items })} isList />
          <Group align="end" gap="xs">
            {(type === "page" || type === "offset") && <TextInput label={t("recipe.pages.first")} w={160} inputMode="numeric" value={pages.first} onChange={(event) => set({ first: event.currentTarget.value })} />}
            <TextInput label={t("recipe.pages.size")} w={160} inputMode="numeric" value={pages.size} onChange={(event) => set({ size: event.currentTarget.value })} />
            <TextInput label={t("recipe.pages.most")} w={160} inputMode="numeric" placeholder="10" value={pages.most} onChange={(event) => set({ most: event.currentTarget.value })} />
          </Group>
          <Checkbox label={t("recipe.pages.truncate")} checked={pages.truncate} onChange={(event) => set({ truncate: event.currentTarget.checked })} />
        </>
      )}
    </Stack>
  );
}

// Names that services give to such a parameter.
const LIKELY: Partial<Record<Pages["type"], RegExp>> = { page: /^page/i, offset: /^(offset|start|skip)/i, cursor: /(cursor|after|token)/i };

function Place({ label, step, path, onPick, isList = false }: { label: string; step: Step; path: Path | null; onPick: (path: Path) => void; isList?: boolean }) {
  const [isPicking, pick] = useState(false);
  const answer = step.answer?.kind === "json" ? step.answer : null;
  return (
    <div>
      <Group gap="xs">
        <Text size="sm">{label}: {path && <Code>{path.length > 0 ? expressionOf({ kind: "path", path }) : t("recipe.pages.whole")}</Code>}</Text>
        {answer && <Button size="compact-sm" variant="default" aria-expanded={isPicking} onClick={() => pick(!isPicking)}>{t("recipe.pages.pick", { what: label })}</Button>}
      </Group>
      {!answer && <Text size="sm">{t("recipe.pages.noAnswer")}</Text>}
      {isPicking && answer && <AnswerTree answer={answer} picked={path ?? undefined} isOffered={(value) => (typeOf(value) === "list") === isList && typeOf(value) !== "object"} onPick={(picked) => { onPick(picked); pick(false); }} />}
    </div>
  );
}
