// The result of a call: value or error as text, never as markup.
import { Alert, Badge, Button, Card, Code, Group, Stack, Text, Title } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, type CallResult, take } from "../api/client";
import { t, word } from "../messages";
import { Facts } from "./facts";
import { Failure } from "./failure";
import { shortNumber } from "./numbers";

const SHOWN = 20_000;
const MAX_SHOWN = 1_000_000;
const PIECE = 100_000;
const MAX_PIECES = 20;

export function ResultView({ result }: { result: CallResult }) {
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <Badge color={result.ok ? "teal.9" : "red.9"}>{t(result.ok ? "tool.result.ok" : "tool.result.failed")}</Badge>
        {typeof result.meta.durationMs === "number" && <Text size="sm">{t("tool.result.took", { ms: shortNumber(result.meta.durationMs) })}</Text>}
      </Group>
      {result.ok ? (
        <>
          <Value value={result.value} />
          <KeptResult kept={result.meta.kept} />
        </>
      ) : (
        <Alert role="alert" color="red" variant="outline" title={headingOf(result.error)}>
          <Text className="wrap" c="var(--mantine-color-text)">{result.error.message}</Text>
        </Alert>
      )}
      {result.intents.length > 0 && (
        <>
          <Title order={4}>{t("tool.result.intents")}</Title>
          {result.intents.map((intent, place) => <IntentView key={place} intent={intent as Record<string, unknown>} />)}
        </>
      )}
      {(["stdout", "stderr"] as const).filter((stream) => result.meta[stream]).map((stream) => (
        <section key={stream}>
          <Title order={4}>{t(`tool.result.${stream}`)}</Title>
          <Value value={result.meta[stream]} />
        </section>
      ))}
      <details>
        <summary>{t("tool.result.meta")}</summary>
        <Value value={result.meta} />
      </details>
    </Stack>
  );
}

// Only the gate of the arguments speaks about these; another gate refuses for something that is missing, such as a secret.
function headingOf({ type, details }: { type: string; details?: unknown }): string {
  const gate = (details as { gate?: string } | undefined)?.gate;
  return type === "VALIDATION" && gate !== undefined && gate !== "arguments" ? t("error.notReady") : word("error", type);
}

// What a tool asks the host to do next: nothing of it is done here.
function IntentView({ intent: { type, ...fields } }: { intent: Record<string, unknown> }) {
  return (
    <Card withBorder padding="xs" component="article" aria-label={String(type)}>
      <Text fw={600} className="words">{String(type)}</Text>
      {Object.keys(fields).length > 0 && <Facts rows={Object.entries(fields).map(([name, value]) => [name, (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).slice(0, SHOWN)])} />}
    </Card>
  );
}

// A result that is too large for one answer is stored by the server, and read piece by piece.
function KeptResult({ kept }: { kept: unknown }) {
  const { handle, letters, shown } = (kept ?? {}) as { handle?: string; letters?: number; shown?: number };
  const [pieces, setPieces] = useState<string[]>([]);
  const [next, setNext] = useState<number | null>(0);
  const more = useMutation({
    mutationFn: () => take(api.GET("/crib/results/{handle}", { params: { path: { handle: handle ?? "" }, query: { offset: next ?? 0, length: PIECE } } })),
    onSuccess: (piece) => {
      setPieces([...pieces, piece.text]);
      setNext(piece.next);
    },
  });
  if (!handle) return null;
  const read = pieces.length ? (next ?? letters ?? 0) : (shown ?? 0);
  return (
    <>
      {pieces.map((piece, place) => <Code key={place} block className="wrap scroll" tabIndex={0}>{piece}</Code>)}
      <Group>
        <Text size="sm">{t("tool.result.large", { shown: read, total: letters ?? 0 })}</Text>
        {next !== null && pieces.length < MAX_PIECES && <Button size="xs" variant="default" loading={more.isPending} onClick={() => more.mutate()}>{t("tool.result.more")}</Button>}
      </Group>
      {more.error && <Failure message={more.error.message} />}
    </>
  );
}

// Text is shown in steps: a browser that lays out megabytes at once does nothing else. What cannot be seen is written out, so that
// a person approves what runs and not what it looks like.
export function Value({ value }: { value: unknown }) {
  const [shown, show] = useState(SHOWN);
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "null");
  const isLong = text.length > shown;
  return (
    <>
      <Code block className="wrap scroll" tabIndex={0}>{isLong ? text.slice(0, shown) : text}</Code>
      {isLong && (
        <Group>
          <Text size="sm">{t("tool.result.large", { shown, total: text.length })}</Text>
          {shown < MAX_SHOWN && <Button size="xs" variant="default" onClick={() => show(Math.min(MAX_SHOWN, shown * 4))}>{t("tool.result.more")}</Button>}
        </Group>
      )}
    </>
  );
}
