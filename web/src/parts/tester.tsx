// Try a tool: arguments, what would happen, the call as it runs, and its result.
import { Alert, Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { api, type CallResult, send, take, type Tool } from "../api/client";
import { streamCall } from "../api/stream";
import { t } from "../messages";
import { useFeatures } from "../screens";
import { useWho } from "../sign-in";
import { type Arguments, ArgumentsEditor, type ArgumentsState } from "./arguments-editor";
import { Dialog } from "./dialog";
import { ExplainLadder } from "./explain-ladder";
import { Failure } from "./failure";
import { GivenArguments, textsOf } from "./given-arguments";
import { LiveView, useLive } from "./live-view";
import { ResultView } from "./result-view";
import { approvalQuery, RunParts } from "./run-parts";

// What another part of the screen asks for: to run the arguments that it gave, or to have the missing ones typed.
export interface Order {
  number: number;
  missing: readonly string[][];
  isRun: boolean;
}
interface Wanted {
  values: Arguments;
  confirmation?: string;
}
interface Question extends Wanted {
  reason: string;
  approval?: string;
}

export function Tester({ tool, state, change, order }: { tool: Tool; state: ArgumentsState; change: (state: ArgumentsState) => void; order: Order }) {
  const features = useFeatures();
  const who = useWho();
  const queries = useQueryClient();
  const [question, ask] = useState<Question | null>(null);
  const stop = useRef<AbortController>(null);
  const { live, hear, clear } = useLive();
  const { values, mistake } = state;

  const run = useMutation({
    mutationFn: async ({ values: args, confirmation }: Wanted): Promise<CallResult> => {
      stop.current = new AbortController();
      clear();
      return streamCall({ name: tool.address, args, ...(confirmation && { confirmation }) }, stop.current.signal, hear);
    },
    onSuccess: (result, { values: args }) => {
      // A question to the person is no run; what follows from its answer is one.
      if (features.has("history") && !isQuestion(result)) {
        const outcome = result.ok ? short(result.value) : result.error.message;
        // A run that cannot be noted was made all the same.
        void send("POST", "/ui/runs", { tool: tool.address, arguments: args, ok: result.ok, outcome })
          .then(() => queries.invalidateQueries({ queryKey: ["runs"] }), () => undefined);
      }
      if (result.ok || !isQuestion(result)) return;
      const { confirmation, approval, rule, reason } = (result.error.details ?? {}) as Record<string, unknown>;
      const why = rule === "requires_confirmation" ? t("tool.confirm.required") : String(reason);
      if (typeof confirmation === "string") ask({ reason: why, values: args, confirmation, ...(typeof approval === "string" && { approval }) });
    },
  });
  const explain = useMutation({
    mutationFn: () => take(api.POST("/crib/explain", { body: { name: tool.address, args: values } })),
  });

  // An order is carried out once, also where effects are run twice.
  const done = useRef(order.number);
  useEffect(() => {
    if (done.current === order.number) return;
    done.current = order.number;
    explain.reset();
    if (order.isRun) run.mutate({ values });
    else run.reset();
  }, [order]);

  return (
    <Stack gap="md">
      {order.missing.length > 0 && !run.data && (
        <Alert variant="outline" color="orange" role="status">
          <Text c="var(--mantine-color-text)" className="wrap">{t("tool.masked", { names: order.missing.map((path) => path.join(".")).join(", ") })}</Text>
        </Alert>
      )}
      <ArgumentsEditor schema={tool.parameters} state={state} change={change} given={order.number} missing={order.missing} />
      <Group>
        <Button onClick={() => run.mutate({ values })} loading={run.isPending} disabled={Boolean(mistake)}>{t("tool.run")}</Button>
        {run.isPending && <><Button variant="default" onClick={() => stop.current?.abort()}>{t("tool.stop")}</Button><Elapsed /></>}
        <Button variant="default" onClick={() => explain.mutate()} loading={explain.isPending} disabled={Boolean(mistake)}>{t("tool.explain")}</Button>
      </Group>
      <section aria-live="polite" aria-label={t("tool.result")}>
        {!run.data && <LiveView live={live} />}
        {run.error && <Failure message={run.error.name === "AbortError" ? t("tool.stopped") : run.error.message} />}
        {run.data && (isQuestion(run.data) ? question === null && <NotRun result={run.data} /> : <ResultView result={run.data} />)}
        {run.data && !isQuestion(run.data) && features.has("cases") && <SaveExample tool={tool} values={run.variables.values} result={run.data} />}
      </section>
      {explain.error && <Failure message={explain.error.message} />}
      {explain.data && <ExplainLadder explanation={explain.data} />}
      <Dialog opened={question !== null} onClose={() => ask(null)} title={t("tool.confirm.title", { tool: tool.name })} closeLabel={t("tool.confirm.no")}>
        <Text className="wrap">{question?.reason}</Text>
        <GivenArguments values={question?.values ?? {}} texts={textsOf(tool.parameters)} />
        {question?.approval && who.scopes.includes("approve") && <WouldRun approval={question.approval} />}
        <Group mt="md">
          <Button color="red.9" onClick={() => { if (question) run.mutate(question); ask(null); }}>{t("tool.confirm.yes")}</Button>
          <Button variant="default" onClick={() => ask(null)}>{t("tool.confirm.no")}</Button>
        </Group>
      </Dialog>
    </Stack>
  );
}

function isQuestion(result: CallResult): boolean {
  return !result.ok && result.error.type === "CONFIRMATION_REQUIRED";
}

// A call that waits for an answer has not failed.
function NotRun({ result }: { result: CallResult }) {
  const isOwn = !result.ok && "confirmation" in (result.error.details ?? {});
  return <Alert variant="outline"><Text c="var(--mantine-color-text)">{t(isOwn ? "tool.confirm.declined" : "tool.confirm.other")}</Text></Alert>;
}

// The same call waits for other people too, so what it would run is stored; who may approve calls may see it.
function WouldRun({ approval }: { approval: string }) {
  const found = useQuery(approvalQuery(approval));
  return (
    <>
      {found.error && <Failure message={found.error.message} retry={() => void found.refetch()} />}
      {found.data?.runs && <details><summary>{t("approvals.runs")}</summary><RunParts parts={found.data.runs} order={3} /></details>}
    </>
  );
}

// How long a call has been running.
function Elapsed() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((before) => before + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  return <Text role="status">{t("tool.elapsed", { seconds })}</Text>;
}

const MAX_RECORDED = 20_000;

// What was run becomes a case that `crib test` tries.
function SaveExample({ tool, values, result }: { tool: Tool; values: Arguments; result: CallResult }) {
  const who = useWho();
  const [isAsking, ask] = useState(false);
  const [name, setName] = useState("");
  const save = useMutation({
    mutationFn: () => {
      const isSmall = result.ok && (JSON.stringify(result.value) ?? "").length < MAX_RECORDED;
      const expect = result.ok ? { ok: true, ...(isSmall && { value: result.value }) } : { ok: false, error: { type: result.error.type } };
      return send<{ file: string }>("POST", "/ui/cases", { tool: tool.address, name, arguments: values, expect });
    },
    onSuccess: () => ask(false),
  });
  if (!who.scopes.includes("manage")) return null;
  return (
    <>
      <Group mt="xs">
        <Button variant="default" size="compact-sm" onClick={() => ask(true)}>{t("tool.save")}</Button>
        {save.data && <Text size="sm" role="status">{t("tool.save.saved", { file: save.data.file })}</Text>}
      </Group>
      <Dialog opened={isAsking} onClose={() => ask(false)} title={t("tool.save")}>
        <form onSubmit={(event) => { event.preventDefault(); save.mutate(); }}>
          <Stack gap="sm">
            <TextInput label={t("tool.save.name")} required value={name} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
            {save.error && <Failure message={save.error.message} />}
            <Group><Button type="submit" loading={save.isPending} disabled={!name.trim()}>{t("tool.save")}</Button></Group>
          </Stack>
        </form>
      </Dialog>
    </>
  );
}

function short(value: unknown): string {
  return ((typeof value === "string" ? value.slice(0, 400) : JSON.stringify(value)) ?? "").slice(0, 300);
}
