// What exactly a call would run: each part as text, with everything written out that cannot be seen.
import { Badge, Group, Stack, Text, Title } from "@mantine/core";
import { api, type Schemas, take } from "../api/client";
import { t, word } from "../messages";
import { Facts } from "./facts";
import { Value } from "./result-view";

type Part = Schemas["ApprovalPart"];

// An approval with what it would run, which is stored with the question and never changes.
export function approvalQuery(approvalID: string) {
  return {
    queryKey: ["approval", approvalID],
    queryFn: ({ signal }: { signal: AbortSignal }) => take(api.GET("/approvals/{approvalID}", { params: { path: { approvalID } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  };
}

export function RunParts({ parts, order }: { parts: readonly Part[]; order: 3 | 4 }) {
  return (
    <Stack gap="sm">
      {parts.map((part, place) => <One key={place} part={part} order={order} />)}
    </Stack>
  );
}

function One({ part, order }: { part: Part; order: 3 | 4 }) {
  return (
    // A group and no region: calls that wait for a person often run the same thing, and landmarks have names of their own.
    <div role="group" aria-label={part.title}>
      <Group gap="xs" wrap="wrap">
        <Title order={order} size="h5" className="wrap">{t("runs.title", { kind: word("runs", part.kind), title: part.title })}</Title>
        {!part.exact && <Badge variant="outline" c="var(--mantine-color-text)">{t("runs.template")}</Badge>}
      </Group>
      {part.note && <Text size="sm" className="wrap">{part.note}</Text>}
      {part.facts.length > 0 && <Facts rows={part.facts.map(({ name, value }) => [name, value] as const)} />}
      {part.text !== null && <Value value={part.text} />}
      {part.bytes !== null && <Text size="sm" className="wrap">{sizeOf(part)}</Text>}
    </div>
  );
}

function sizeOf({ bytes, shownBytes, sha256 }: Part): string {
  const facts = { bytes: bytes ?? 0, shown: shownBytes, hash: sha256 ?? "" };
  return t(shownBytes === bytes ? "runs.whole" : shownBytes ? "runs.beginning" : "runs.unshown", facts);
}
