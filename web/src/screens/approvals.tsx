// Calls that wait for a person: exactly what would run, and a decision that holds once.
import { Alert, Badge, Button, Card, Group, SegmentedControl, Stack, Text, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, type Approval, take } from "../api/client";
import { t } from "../messages";
import { Failure } from "../parts/failure";
import { Value } from "../parts/result-view";
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
      {found.isSuccess && approvals.length === 0 && <Text role="status">{t("approvals.none")}</Text>}
      {approvals.map((approval) => <One key={approval.id} approval={approval} />)}
    </Stack>
  );
}

function One({ approval }: { approval: Approval }) {
  const [note, setNote] = useState("");
  const queries = useQueryClient();
  const decide = useMutation({
    mutationFn: (decision: "approve" | "refuse") =>
      take(api.POST("/approvals/{approvalID}", { params: { path: { approvalID: approval.id } }, body: { decision, ...(note && { note }) } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["approvals"] }),
  });
  return (
    <Card withBorder component="article" aria-label={approval.tool}>
      <Group justify="space-between"><Title order={3} size="h4" className="wrap">{approval.tool}</Title><Badge variant="outline" c="var(--mantine-color-text)">{approval.state}</Badge></Group>
      <Text>{t("approvals.caller")}: {approval.caller}</Text>
      <Text className="wrap">{t("approvals.reason")}: {approval.reason}</Text>
      <Text>{t("approvals.expires")}: {new Date(approval.expiresAt).toLocaleString()}</Text>
      <Text mt="xs" fw={600}>{t("approvals.runs")}</Text>
      <Value value={{ tool: approval.tool, version: approval.version, contentHash: approval.contentHash, arguments: approval.arguments }} />
      {approval.state === "pending" ? (
        <>
          <TextInput mt="xs" label={t("approvals.note")} value={note} onChange={(event) => setNote(event.currentTarget.value)} />
          {decide.error && <Failure message={decide.error.message} />}
          <Group mt="sm">
            <Button onClick={() => decide.mutate("approve")} loading={decide.isPending}>{t("approvals.approve")}</Button>
            <Button variant="default" onClick={() => decide.mutate("refuse")} disabled={decide.isPending}>{t("approvals.refuse")}</Button>
          </Group>
        </>
      ) : (
        approval.decidedBy && <Alert mt="xs" variant="outline">{t("approvals.decided", { state: approval.state, who: approval.decidedBy })} {approval.note}</Alert>
      )}
    </Card>
  );
}
