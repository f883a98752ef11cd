// Calls that wait for a person: what is asked, by whom, and a decision that holds once; what exactly would run stands below.
import { Alert, Badge, Button, Card, Group, SegmentedControl, Stack, Text, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { api, type Approval, take } from "../api/client";
import { moment, t, word } from "../messages";
import { useCallerName } from "../parts/caller";
import { Empty } from "../parts/empty";
import { Facts } from "../parts/facts";
import { Failure } from "../parts/failure";
import { FromAuthor, GivenArguments } from "../parts/given-arguments";
import { Value } from "../parts/result-view";
import { approvalQuery, RunParts } from "../parts/run-parts";
import { useWho } from "../sign-in";
import { approvalsQuery, notifying } from "../waiting";

type Shown = "pending" | "all";

export default function Approvals() {
  const who = useWho();
  const may = who.scopes.includes("approve");
  const [state, setState] = useState<Shown>("pending");
  const found = useQuery(approvalsQuery(state, may));
  // A card that was shown keeps its place: no other one comes under the pointer when a call is decided.
  const kept = useRef(new Map<string, Approval>());
  const current = (found.data ?? []).filter((one) => state === "all" || one.caller !== who.caller);
  for (const one of current) kept.current.set(one.id, one);
  const cards = [...kept.current.values()];
  const ids = new Set(current.map((one) => one.id));
  const counts = new Map<string, number>();
  for (const key of cards.map(keyOf)) counts.set(key, (counts.get(key) ?? 0) + 1);
  if (!may) {
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
      <Group>
        <SegmentedControl
          aria-label={t("approvals.state")}
          data={[{ value: "pending", label: t("approvals.pending") }, { value: "all", label: t("approvals.all") }]}
          value={state}
          onChange={(next) => { kept.current.clear(); setState(next as Shown); }}
          w="fit-content"
        />
        <Notices />
      </Group>
      {found.error && <Failure message={found.error.message} retry={() => void found.refetch()} />}
      {found.isLoading && <Text role="status">{t("app.loading")}</Text>}
      {found.isSuccess && cards.length === 0 && <Empty text={t("approvals.none")} help={t("approvals.none.help")} />}
      {cards.map((one) => <One key={one.id} given={one} isGone={found.isSuccess && !ids.has(one.id)} equal={(counts.get(keyOf(one)) ?? 1) - 1} />)}
    </Stack>
  );
}

// Equal for requests of the same tool with the same values.
function keyOf({ tool, arguments: values }: Approval): string {
  return JSON.stringify([tool, Object.entries(values as object).sort(([one], [other]) => (one < other ? -1 : 1))]);
}

// The browser asks the person itself, and only after a click.
function Notices() {
  const [permission, know] = useState(notifying);
  if (permission === "granted") return <Text size="sm">{t("approvals.notices")}</Text>;
  if (permission !== "default") return null;
  return <Button variant="default" size="xs" onClick={() => void Notification.requestPermission().then(know)}>{t("approvals.notices.ask")}</Button>;
}

function One({ given, isGone, equal }: { given: Approval; isGone: boolean; equal: number }) {
  const [note, setNote] = useState("");
  const queries = useQueryClient();
  const path = { approvalID: given.id };
  const query = approvalQuery(given.id);
  const whole = useQuery(query);
  const said = useRef<HTMLDivElement>(null);
  const decide = useMutation({
    mutationFn: (decision: "approve" | "refuse") =>
      take(api.POST("/approvals/{approvalID}", { params: { path }, body: { decision, ...(note && { note }) } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["approvals"] }),
  });
  // Somebody else decided, or it expired.
  useEffect(() => {
    if (isGone) void queries.invalidateQueries({ queryKey: query.queryKey });
  }, [isGone]);
  // The button that had the focus is gone.
  useEffect(() => {
    if (decide.isSuccess) said.current?.focus();
  }, [decide.isSuccess]);
  const approval = decide.data ?? (isGone ? (whole.data ?? given) : given);
  const { runs, about = {} } = whole.data ?? {};
  const caller = useCallerName(approval.caller);
  const decider = useCallerName(approval.decidedBy ?? "");
  return (
    <Card withBorder component="article" aria-label={approval.tool}>
      <Group justify="space-between">
        <Title order={3} size="h4" className="wrap">{about.title || approval.tool}</Title>
        <Badge variant="outline" c="var(--mantine-color-text)">{word("approvals", approval.state)}</Badge>
      </Group>
      {equal > 0 && <Alert my="xs" p="xs" variant="outline" color="orange"><Text c="var(--mantine-color-text)">{t("approvals.equal", { count: equal })}</Text></Alert>}
      <FromAuthor text={about.description} />
      <GivenArguments values={approval.arguments as Record<string, unknown>} texts={about.arguments ?? {}} />
      <Facts
        rows={[
          [t("approvals.caller"), caller],
          [t("approvals.since"), moment(Date.parse(approval.createdAt) / 1000)],
          [t("approvals.reason"), approval.reason],
          [t("approvals.effects"), word("tools.effects", about.sideEffects ?? "") || t("tool.effects.unsaid")],
        ]}
      />
      {whole.error && <Failure message={whole.error.message} retry={() => void whole.refetch()} />}
      {whole.isSuccess && !runs && <Alert color="red" variant="outline" mt="xs"><Text className="wrap" c="var(--mantine-color-text)">{t("approvals.runs.none")}</Text></Alert>}
      <div className="decision" ref={said} tabIndex={-1} aria-live="polite">
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
          <Alert mt="xs" variant="outline" color={approval.state === "refused" || approval.state === "expired" ? "orange" : "teal"}>
            <Text className="wrap" c="var(--mantine-color-text)">
              {decide.data ? t(approval.state === "refused" ? "approvals.done.refuse" : "approvals.done.approve", { tool: about.title || approval.tool })
                : approval.decidedBy ? t("approvals.decided", { state: word("approvals", approval.state), who: decider }) : word("approvals", approval.state)}
              {" "}{approval.note}
            </Text>
          </Alert>
        )}
      </div>
      {runs && <details><summary>{t("approvals.runs")}</summary><RunParts parts={runs} order={4} /></details>}
      <details>
        <summary>{t("approvals.binding")}</summary>
        <Facts rows={[[t("approvals.digest"), approval.digest], [t("approvals.expires"), moment(Date.parse(approval.expiresAt) / 1000)]]} />
        <Value value={{ tool: approval.tool, version: approval.version, contentHash: approval.contentHash, arguments: approval.arguments, digest: approval.digest }} />
      </details>
    </Card>
  );
}
