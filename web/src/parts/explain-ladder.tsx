// Every check of a call in its order, and what it would decide.
import { Alert, Stack, Text } from "@mantine/core";
import type { Finding, Schemas } from "../api/client";
import { type MessageId, t, word } from "../messages";

const DECISIONS: Record<Finding["decision"], MessageId> = {
  allow: "explain.allow",
  confirm: "explain.confirm",
  deny: "explain.deny",
  "not reached": "explain.notReached",
};

const MARKS: Record<Finding["decision"], string> = { allow: "✓", confirm: "?", deny: "✕", "not reached": "–" };

export function ExplainLadder({ explanation }: { explanation: Schemas["Explanation"] }) {
  return (
    <Stack gap="xs">
      <Alert color={explanation.allowed ? "teal" : "red"} variant="outline" title={t("explain.title")}>
        <Text c="var(--mantine-color-text)">{t(explanation.allowed ? "explain.allowed" : "explain.refused")}</Text>
      </Alert>
      <ol className="ladder">
        {explanation.findings.map((finding, place) => (
          <li key={`${finding.gate} ${place}`} data-decision={finding.decision}>
            <Text><span className="ladder-mark" aria-hidden>{MARKS[finding.decision]}</span><strong>{word("gate", finding.gate)}</strong>: {t(DECISIONS[finding.decision])}</Text>
            {finding.reason && <Text size="sm" className="wrap">{finding.reason}</Text>}
            {finding.note && <Text size="sm" className="wrap">{finding.note}</Text>}
            {finding.where && <Text size="sm" className="wrap">{t("explain.where", { where: finding.where })}</Text>}
            {finding.cure && <Text size="sm" className="wrap">{t("explain.cure", { cure: finding.cure })}</Text>}
          </li>
        ))}
      </ol>
    </Stack>
  );
}
