// The result of a call: value or error as text, never as markup.
import { Alert, Badge, Button, Code, Group, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import type { CallResult } from "../api/client";
import { t } from "../messages";

const SHOWN = 20_000;

export function ResultView({ result }: { result: CallResult }) {
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <Badge color={result.ok ? "teal.9" : "red.9"}>{t(result.ok ? "tool.result.ok" : "tool.result.failed")}</Badge>
        {typeof result.meta.durationMs === "number" && <Text size="sm">{t("tool.result.took", { ms: Math.round(result.meta.durationMs) })}</Text>}
      </Group>
      {result.ok ? (
        <Value value={result.value} />
      ) : (
        <Alert role="alert" color="red" variant="outline" title={result.error.type}>
          <Text className="wrap" c="var(--mantine-color-text)">{result.error.message}</Text>
        </Alert>
      )}
      {result.intents.length > 0 && (
        <>
          <Title order={4}>{t("tool.result.intents")}</Title>
          <Value value={result.intents} />
        </>
      )}
      <details>
        <summary>{t("tool.result.meta")}</summary>
        <Value value={result.meta} />
      </details>
    </Stack>
  );
}

export function Value({ value }: { value: unknown }) {
  const [isWhole, showWhole] = useState(false);
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "null");
  const isLong = text.length > SHOWN && !isWhole;
  return (
    <>
      <Code block className="wrap scroll" tabIndex={0}>{isLong ? text.slice(0, SHOWN) : text}</Code>
      {isLong && (
        <Group>
          <Text size="sm">{t("tool.result.large", { shown: SHOWN, total: text.length })}</Text>
          <Button size="xs" variant="default" onClick={() => showWhole(true)}>{t("tool.result.all")}</Button>
        </Group>
      )}
    </>
  );
}
