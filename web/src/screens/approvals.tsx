// Calls that wait for a person: exactly what would run, and a decision that holds once.
import { Alert, Badge, Button, Card, Group, SegmentedControl, Stack, Text, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, type Approval, readTool, take } from "../api/client";
import { moment, t, word } from "../messages";
import { useCallerName } from "../parts/caller";
import { Empty } from "../parts/empty";
import { Facts } from "../parts/facts";
import { Failure } from "../parts/failure";
import { Value } from "../parts/result-view";
import { approvalQuery, RunParts } from "../parts/run-parts";
import { useWho } from "../sign-in";

export default function Approvals() {
  const who = useWho();
  const [state, setState] = useState<"pending" | "all">("pending");
  const found = useQuery({
    queryKey: ["approvals", state],
    queryFn: ({ signal }) => take(api.GET("/approvals", { params: { query: { state } }, signal })),
    refetchInterval: 3_000,
    enabled: who.scopes.includes("approve"),
  });
  const approvals: Approval[] = found.data?.approvals ?? [];
  if (!who.scopes.includes("approve")) {
    return (
      <Stack gap="sm">
        <Title order={2}>{t("nav.approvals")}</Title>
        <Alert variant="outline">{t("approvals.needs")} {t("sign.link.help")}</Alert>
      </Stack>
    );
  }
  return (
    <Stack gap="sm">
      <Title order={2}>{t("nav.approvals")}</Title>
      <SegmentedControl
        aria-label={t("approvals.state")}
        data={[{ value: "pending", label: t("approvals.pending") }, { value: "all", label: t("approvals.all") }]}
        value={state}
        onChange={(next) => setState(next as "pending" | "all")}
        w="fit-content"
      />
      {found.error && <Failure message={found.error.message} retry={() => void found.refetch()} />}
      {found.isLoading && <Text role="status">{t("app.loading")}</Text>}
      {found.isSuccess && approvals.length === 0 && <Empty text={t("approvals.none")} help={t("approvals.none.help")} />}
      {approvals.map((approval) => <One key={approval.id} approval={approval} />)}
    </Stack>
  );
}

function One({ approval }: { approval: Approval }) {
  const [note, setNote] = useState("");
  const caller = useCallerName(approval.caller);
  const decider = useCallerName(approval.decidedBy ?? "");
  // What the tool says of itself; a person without the right to read decides without it.
  const tool = useQuery({ queryKey: ["tools", "one", approval.tool], queryFn: ({ signal }) => readTool(approval.tool, signal), retry: false });
  const path = { approvalID: approval.id };
  const whole = useQuery(approvalQuery(approval.id));
  const runs = whole.data?.runs;
  const queries = useQueryClient();
  const decide = useMutation({
    mutationFn: (decision: "approve" | "refuse") =>
      take(api.POST("/approvals/{approvalID}", { params: { path }, body: { decision, ...(note && { note }) } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["approvals"] }),
  });
  return (
    <Card withBorder component="article" aria-label={approval.tool}>
      <Group justify="space-between"><Title order={3} size="h4" className="wrap">{approval.tool}</Title><Badge variant="outline" c="var(--mantine-color-text)">{word("approvals", approval.state)}</Badge></Group>
      {tool.data && <Text className="wrap">{tool.data.description}</Text>}
      <Facts
        rows={[
          [t("approvals.caller"), caller],
          [t("approvals.reason"), approval.reason],
          ...(tool.data ? [[t("approvals.effects"), word("tools.effects", tool.data.sideEffects) || t("tool.effects.unsaid")] as const] : []),
          [t("approvals.expires"), moment(Date.parse(approval.expiresAt) / 1000)],
          // The approval counts for this call alone: another tool, content, argument or caller has another digest.
          [t("approvals.digest"), approval.digest],
        ]}
      />
      <Text mt="xs" fw={600}>{t("approvals.arguments")}</Text>
      <Given values={approval.arguments} />
      <Title order={4} size="h5" mt="xs">{t("approvals.runs")}</Title>
      {whole.isLoading && <Text role="status">{t("app.loading")}</Text>}
      {whole.error && <Failure message={whole.error.message} retry={() => void whole.refetch()} />}
      {runs && <RunParts parts={runs} order={5} />}
      {whole.isSuccess && !runs && <Alert color="red" variant="outline"><Text className="wrap" c="var(--mantine-color-text)">{t("approvals.runs.none")}</Text></Alert>}
      <details>
        <summary>{t("approvals.binding")}</summary>
        <Value value={{ tool: approval.tool, version: approval.version, contentHash: approval.contentHash, arguments: approval.arguments, digest: approval.digest }} />
      </details>
      {approval.state === "pending" ? (
        <>
          <TextInput mt="xs" label={t("approvals.note")} value={note} onChange={(event) => setNote(event.currentTarget.value)} />
          {decide.error && <Failure message={decide.error.message} />}
          <Group mt="sm">
            <Button onClick={() => decide.mutate("approve")} loading={decide.isPending} disabled={!runs}>{t("approvals.approve")}</Button>
            <Button variant="default" onClick={() => decide.mutate("refuse")} disabled={decide.isPending}>{t("approvals.refuse")}</Button>
          </Group>
        </>
      ) : (
        approval.decidedBy && <Alert mt="xs" variant="outline">{t("approvals.decided", { state: word("approvals", approval.state), who: decider })} {approval.note}</Alert>
      )}
    </Card>
  );
}

const MAX_SHOWN = 2_000;

// The arguments as names and values, for a person who does not read JSON; the exact ones stand below.
function Given({ values }: { values: unknown }) {
  const rows = Object.entries((values ?? {}) as Record<string, unknown>);
  if (rows.length === 0) return <Text>{t("approvals.arguments.none")}</Text>;
  return <Facts rows={rows.map(([name, value]) => [name, (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).slice(0, MAX_SHOWN)])} />;
}
