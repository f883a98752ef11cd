// One part of a request: fixed, given by the caller, a secret, or taken from an earlier answer.
import { Button, Popover, SegmentedControl, Select, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { t } from "../messages";
import { isName, nameFor, type Output, type Part, type Source } from "./model";

interface Given {
  part: Part;
  outputs: Output[];
  taken: string[];
  onChange: (source: Source) => void;
  onFix: (value: string) => void;
}

export function PartEditor({ part, outputs, taken, onChange, onFix }: Given) {
  const [opened, open] = useState(false);
  const { source } = part;
  const [kind, setKind] = useState<Source["kind"]>("fixed");
  const [name, setName] = useState("");
  const [fixed, setFixed] = useState("");
  const [output, setOutput] = useState<string | null>(null);

  // The canvas may have changed the part since it was last opened.
  function begin() {
    setKind(source.kind);
    setName(source.kind === "input" || source.kind === "secret" ? source.name : nameFor(part.place === "path" ? String(part.value) : part.label, taken));
    setFixed(String(part.value ?? ""));
    setOutput(source.kind === "step" ? key(source.step, source.path) : null);
    open(true);
  }

  const canSave = kind === "fixed" || (kind === "step" ? output !== null : isName(name));

  function save() {
    if (kind === "fixed") onFix(fixed);
    else if (kind === "step") {
      const found = outputs.find((one) => key(one.step, one.path) === output);
      if (found) onChange({ kind, step: found.step, path: found.path });
    } else onChange({ kind, name: kind === "secret" ? name.toUpperCase() : name });
    open(false);
  }

  return (
    <Popover opened={opened} onChange={open} trapFocus returnFocus position="bottom-start" width={300}>
      <Popover.Target>
        <Button size="compact-md" variant={source.kind === "fixed" ? "default" : "filled"} onClick={() => (opened ? open(false) : begin())} aria-haspopup="dialog">
          {label(part)}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={t("recipe.part", { label: part.label })}>
        <Stack gap="xs">
          <SegmentedControl
            orientation="vertical"
            aria-label={t("recipe.part", { label: part.label })}
            value={kind}
            onChange={(value) => setKind(value as Source["kind"])}
            data={[
              { value: "fixed", label: t("recipe.fixed") },
              { value: "input", label: t("recipe.input") },
              { value: "secret", label: t("recipe.secret") },
              ...(outputs.length > 0 ? [{ value: "step", label: t("recipe.fromStep") }] : []),
            ]}
          />
          {kind === "fixed" && <TextInput label={t("recipe.value")} value={fixed} onChange={(event) => setFixed(event.currentTarget.value)} />}
          {(kind === "input" || kind === "secret") && (
            <TextInput
              label={t(kind === "input" ? "recipe.input.name" : "recipe.secret.name")}
              description={kind === "secret" ? t("recipe.secret.help", { name: name.toUpperCase() || "NAME" }) : undefined}
              value={name}
              error={isName(name) ? undefined : t("recipe.name.wrong")}
              onChange={(event) => setName(event.currentTarget.value)}
            />
          )}
          {kind === "step" && (
            <Select
              label={t("recipe.output")}
              searchable
              comboboxProps={{ withinPortal: false }}
              data={outputs.map((one) => ({ value: key(one.step, one.path), label: `${one.step}: ${one.path.join(".")} (${String(one.value).slice(0, 30)})` }))}
              value={output}
              onChange={setOutput}
            />
          )}
          <Button onClick={save} disabled={!canSave}>{t("recipe.use")}</Button>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

function key(step: string, path: (string | number)[]): string {
  return JSON.stringify([step, path]);
}

function label(part: Part) {
  const { source } = part;
  const name = part.place === "path" ? "" : `${part.label} = `;
  if (source.kind === "fixed") return <Text span>{name}{String(part.value ?? "") || "–"}</Text>;
  if (source.kind === "input") return <Text span>{name}{`{${source.name}}`}</Text>;
  if (source.kind === "secret") return <Text span>{name}{t("recipe.secret.shown", { name: source.name })}</Text>;
  return <Text span>{name}← {source.step}.{source.path.join(".")}</Text>;
}
