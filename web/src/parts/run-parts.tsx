// What exactly a call would run: each part as text, with everything written out that cannot be seen.
import { Badge, Group, Stack, Text, Title } from "@mantine/core";
import type { Schemas } from "../api/client";
import { t, word } from "../messages";
import { Facts } from "./facts";
import { visible } from "./live-view";
import { Value } from "./result-view";

type Part = Schemas["ApprovalPart"];

export function RunParts({ parts }: { parts: readonly Part[] }) {
  return (
    <Stack gap="sm">
      {parts.map((part, place) => <One key={place} part={part} />)}
    </Stack>
  );
}

function One({ part }: { part: Part }) {
  return (
    <section aria-label={visible(part.title)}>
      <Group gap="xs" wrap="wrap">
        <Title order={5} className="wrap">{t("runs.title", { kind: word("runs", part.kind), title: visible(part.title) })}</Title>
        {!part.exact && <Badge variant="outline" c="var(--mantine-color-text)">{t("runs.template")}</Badge>}
      </Group>
      {part.note && <Text size="sm" className="wrap">{visible(part.note)}</Text>}
      {part.facts.length > 0 && <Facts rows={part.facts.map(({ name, value }) => [visible(name), visible(value)] as const)} />}
      {part.text !== null && <Value value={part.text} />}
      {part.bytes !== null && <Text size="sm" className="wrap">{sizeOf(part)}</Text>}
    </section>
  );
}

function sizeOf({ bytes, shownBytes, sha256 }: Part): string {
  const facts = { bytes: bytes ?? 0, shown: shownBytes, hash: sha256 ?? "" };
  return t(shownBytes === bytes ? "runs.whole" : shownBytes ? "runs.beginning" : "runs.unshown", facts);
}
