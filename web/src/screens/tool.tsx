// One tool: try it with a form or JSON, read about it, and copy how to call it from elsewhere.
import { Alert, Anchor, Badge, Button, Code, CopyButton, Group, NativeSelect, SegmentedControl, Stack, Table, Tabs, Text, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { Link, useParams } from "wouter";
import { api, type CallResult, read, Refusal, send, take, type Tool, type ToolRow } from "../api/client";
import { streamCall } from "../api/stream";
import { t } from "../messages";
import { Dialog } from "../parts/dialog";
import { DiffView } from "../parts/diff-view";
import { Failure } from "../parts/failure";
import { ExplainLadder } from "../parts/explain-ladder";
import { LiveView, useLive } from "../parts/live-view";
import { ResultView, Value } from "../parts/result-view";
import { isTooLarge } from "../schema-size";
import { useWho } from "../sign-in";
import { snippets } from "../snippets";
import { useFeatures } from "./index";
import { ToolSwitch } from "./tools";

const SchemaForm = lazy(() => import("../parts/schema-form"));
const JsonEditor = lazy(() => import("../parts/json-editor"));
const StoredVersion = lazy(() => import("../parts/stored-version"));
const Markdown = lazy(() => import("../parts/markdown"));

async function readTool(address: string, signal: AbortSignal): Promise<Tool> {
  const page = await take(api.GET("/crib/tools", { params: { query: { name: address, includeDisabled: true } }, signal }));
  const tool = page.tools[0] as unknown as Tool | undefined;
  if (!tool) throw new Refusal({ detail: t("tool.missing", { name: address }) });
  return tool;
}

const MAX_VERSIONS = 100;

// The addresses of other tools that go by this name: of other bundles, and stored versions of the same bundle.
function useOthers(tool: Tool | undefined): string[] {
  const stored = useQuery({
    queryKey: ["tools", "versions", tool?.bundle, tool?.name],
    queryFn: ({ signal }) => read<{ tools: ToolRow[] }>("/ui/tools", { q: tool?.name, bundle: tool?.bundle, size: MAX_VERSIONS }, signal),
    enabled: tool !== undefined,
  });
  if (!tool) return [];
  const versions = (stored.data?.tools ?? []).filter((row) => row.name === tool.name && row.bundle === tool.bundle);
  const others = new Set([...versions.map((row) => row.address), ...tool.sameName]);
  others.delete(tool.address);
  return [...others];
}

export default function ToolScreen() {
  const address = decodeURIComponent(useParams<{ address: string }>().address);
  const features = useFeatures();
  const [tab, setTab] = useState<string | null>("try");
  // They live here, so that a look at another tab loses nothing.
  const [values, setValues] = useState<Arguments>({});
  const [given, give] = useState(0);
  const found = useQuery({ queryKey: ["tools", "one", address], queryFn: ({ signal }) => readTool(address, signal) });
  const others = useOthers(found.data);
  if (found.error && !found.data) {
    return (
      <Stack gap="sm">
        <Anchor component={Link} href="/tools">{t("tool.back")}</Anchor>
        <Title order={2} className="wrap">{address}</Title>
        <Failure message={found.error.message} retry={() => void found.refetch()} />
      </Stack>
    );
  }
  if (!found.data) return <Text role="status">{t("app.loading")}</Text>;
  const tool = found.data;
  return (
    <Stack gap="sm">
      <Anchor component={Link} href="/tools">{t("tool.back")}</Anchor>
      <Group justify="space-between" wrap="nowrap">
        <Title order={2} className="wrap">{tool.name}</Title>
        <ToolSwitch tool={tool} />
      </Group>
      <Text className="wrap">{tool.description}</Text>
      {!tool.enabled && <Alert color="orange" variant="outline"><Text>{t("tool.off", { reason: tool.reason })} {tool.cure}</Text></Alert>}
      <Tabs value={tab} onChange={setTab} keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="try">{t("tool.tab.try")}</Tabs.Tab>
          <Tabs.Tab value="about">{t("tool.tab.about")}</Tabs.Tab>
          <Tabs.Tab value="schema">{t("tool.tab.schema")}</Tabs.Tab>
          <Tabs.Tab value="copy">{t("tool.tab.copy")}</Tabs.Tab>
          {features.has("history") && <Tabs.Tab value="history">{t("tool.tab.history")}</Tabs.Tab>}
          {others.length > 0 && <Tabs.Tab value="versions">{t("tool.tab.versions")}</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="try" pt="md" keepMounted><Tester tool={tool} values={values} setValues={setValues} given={given} /></Tabs.Panel>
        <Tabs.Panel value="about" pt="md"><About tool={tool} /><Suspense><StoredVersion tool={tool} /></Suspense></Tabs.Panel>
        <Tabs.Panel value="schema" pt="md"><Schemas tool={tool} /></Tabs.Panel>
        <Tabs.Panel value="copy" pt="md"><Snippets tool={tool} values={values} /></Tabs.Panel>
        <Tabs.Panel value="history" pt="md"><History tool={tool} use={(before) => { setValues(before); give(given + 1); setTab("try"); }} /></Tabs.Panel>
        <Tabs.Panel value="versions" pt="md">{others.length > 0 && <Versions tool={tool} others={others} />}</Tabs.Panel>
      </Tabs>
    </Stack>
  );
}

type Arguments = Record<string, unknown>;

function Tester({ tool, values, setValues, given }: { tool: Tool; values: Arguments; setValues: (values: Arguments) => void; given: number }) {
  const features = useFeatures();
  const queries = useQueryClient();
  const tooLarge = isTooLarge(tool.parameters);
  const [view, setView] = useState<"form" | "json">(tooLarge ? "json" : "form");
  const [text, setText] = useState(() => JSON.stringify(values, null, 2));
  const [mistake, setMistake] = useState("");
  const [question, ask] = useState<{ reason: string; confirmation: string } | null>(null);
  const stop = useRef<AbortController>(null);
  const { live, hear, clear } = useLive();
  const takesArguments = Object.keys((tool.parameters.properties as object | undefined) ?? {}).length > 0 || tool.parameters.additionalProperties !== false;

  // Arguments may come from elsewhere, such as the history.
  const written = useRef(values);
  useEffect(() => {
    if (written.current === values) return;
    written.current = values;
    setText(JSON.stringify(values, null, 2));
    setMistake("");
  }, [values]);
  function set(next: Arguments) {
    written.current = next;
    setValues(next);
  }

  const run = useMutation({
    mutationFn: async (confirmation: string | undefined): Promise<CallResult> => {
      stop.current = new AbortController();
      clear();
      return streamCall({ name: tool.address, args: values, ...(confirmation && { confirmation }) }, stop.current.signal, hear);
    },
    onSuccess: (result) => {
      const isQuestion = !result.ok && result.error.type === "CONFIRMATION_REQUIRED";
      // A question to the person is no run; what follows from its answer is one.
      if (features.has("history") && !isQuestion) {
        const outcome = result.ok ? short(result.value) : result.error.message;
        // A run that cannot be noted was made all the same.
        void send("POST", "/ui/runs", { tool: tool.address, arguments: values, ok: result.ok, outcome })
          .then(() => queries.invalidateQueries({ queryKey: ["runs"] }), () => undefined);
      }
      if (result.ok || !isQuestion) return;
      const confirmation = (result.error.details as Record<string, unknown> | undefined)?.confirmation;
      if (typeof confirmation === "string") ask({ reason: result.error.message, confirmation });
    },
  });
  const explain = useMutation({
    mutationFn: () => take(api.POST("/crib/explain", { body: { name: tool.address, args: values } })),
  });

  function write(next: string) {
    setText(next);
    try {
      const found: unknown = JSON.parse(next);
      if (typeof found !== "object" || found === null || Array.isArray(found)) throw new Error(t("tool.json.object"));
      set(found as Arguments);
      setMistake("");
    } catch (problem) {
      setMistake(t("tool.json.invalid", { reason: (problem as Error).message }));
    }
  }

  return (
    <Stack gap="md">
      <Group justify="space-between">
        <Title order={3}>{t("tool.arguments")}</Title>
        {!tooLarge && (
          <SegmentedControl
            aria-label={t("tool.arguments")}
            data={[{ value: "form", label: t("tool.form") }, { value: "json", label: t("tool.json") }]}
            value={view}
            onChange={(next) => {
              setText(JSON.stringify(values, null, 2));
              setMistake("");
              setView(next as "form" | "json");
            }}
          />
        )}
      </Group>
      {tooLarge && <Alert variant="outline">{t("tool.form.tooLarge")}</Alert>}
      <Suspense fallback={<Text>{t("app.loading")}</Text>}>
        {view === "json" ? (
          <JsonEditor value={text} onChange={write} label={t("tool.arguments")} />
        ) : takesArguments ? (
          <SchemaForm key={given} schema={tool.parameters} value={values} onChange={set} />
        ) : (
          <Text>{t("tool.arguments.none")}</Text>
        )}
      </Suspense>
      {mistake && <Failure message={mistake} />}
      <Group>
        <Button onClick={() => run.mutate(undefined)} loading={run.isPending} disabled={Boolean(mistake)}>{t("tool.run")}</Button>
        {run.isPending && <><Button variant="default" onClick={() => stop.current?.abort()}>{t("tool.stop")}</Button><Elapsed /></>}
        <Button variant="default" onClick={() => explain.mutate()} disabled={Boolean(mistake)}>{t("tool.explain")}</Button>
      </Group>
      <section aria-live="polite" aria-label={t("tool.result")}>
        {!run.data && <LiveView live={live} />}
        {run.error && <Failure message={run.error.name === "AbortError" ? t("tool.stopped") : run.error.message} />}
        {run.data && <ResultView result={run.data} />}
        {run.data && features.has("cases") && <SaveExample tool={tool} values={values} result={run.data} />}
      </section>
      {explain.error && <Failure message={explain.error.message} />}
      {explain.data && <ExplainLadder explanation={explain.data} />}
      <Dialog opened={question !== null} onClose={() => ask(null)} title={t("tool.confirm.title")} closeLabel={t("tool.confirm.no")}>
        <Text className="wrap">{question?.reason}</Text>
        <Text mt="sm">{t("tool.confirm.text")}</Text>
        <Value value={{ tool: tool.address, arguments: values }} />
        <Group mt="md">
          <Button color="red.9" onClick={() => { run.mutate(question?.confirmation); ask(null); }}>{t("tool.confirm.yes")}</Button>
          <Button variant="default" onClick={() => ask(null)}>{t("tool.confirm.no")}</Button>
        </Group>
      </Dialog>
    </Stack>
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

interface Run {
  id: string;
  arguments: Arguments;
  ok: boolean;
  outcome: string;
  at: number;
}

// One's own runs of this tool, newest first.
function History({ tool, use }: { tool: Tool; use: (values: Arguments) => void }) {
  const queries = useQueryClient();
  const found = useQuery({ queryKey: ["runs", tool.address], queryFn: ({ signal }) => read<{ enabled: boolean; runs: Run[] }>("/ui/runs", { tool: tool.address }, signal) });
  const clear = useMutation({ mutationFn: () => send("DELETE", "/ui/runs"), onSettled: () => queries.invalidateQueries({ queryKey: ["runs"] }) });
  if (found.error) return <Failure message={found.error.message} retry={() => void found.refetch()} />;
  if (!found.data) return <Text role="status">{t("app.loading")}</Text>;
  const { enabled, runs } = found.data;
  return (
    <Stack gap="sm">
      {!enabled && <Text>{t("tool.history.off")}</Text>}
      {enabled && runs.length === 0 && <Text>{t("tool.history.none")}</Text>}
      {runs.map((run) => (
        <article key={run.id} aria-label={new Date(run.at * 1000).toLocaleString()}>
          <Group gap="xs">
            <Badge color={run.ok ? "teal.9" : "red.9"}>{t(run.ok ? "tool.result.ok" : "tool.result.failed")}</Badge>
            <Text size="sm">{new Date(run.at * 1000).toLocaleString()}</Text>
            <Button size="compact-sm" variant="default" onClick={() => use(run.arguments)}>{t("tool.history.again")}</Button>
          </Group>
          <Code block className="wrap">{JSON.stringify(run.arguments)}</Code>
          <Text size="sm" className="wrap">{run.outcome}</Text>
        </article>
      ))}
      {runs.length > 0 && <Group><Button variant="default" onClick={() => clear.mutate()}>{t("tool.history.clear")}</Button></Group>}
    </Stack>
  );
}

// This version beside another tool of the same name, line by line.
function Versions({ tool, others }: { tool: Tool; others: string[] }) {
  const [address, choose] = useState(others[0] ?? "");
  const other = useQuery({ queryKey: ["tools", "one", address], queryFn: ({ signal }) => readTool(address, signal), enabled: Boolean(address) });
  const before = other.data && comparable(other.data);
  const after = comparable(tool);
  return (
    <Stack gap="sm">
      <NativeSelect label={t("tool.versions.other")} data={others} value={address} onChange={(event) => choose(event.currentTarget.value)} />
      {other.error && <Failure message={other.error.message} retry={() => void other.refetch()} />}
      {before === after && <Text role="status">{t("tool.versions.same")}</Text>}
      {before && before !== after && <DiffView before={before} after={after} names={[address, tool.address]} />}
    </Stack>
  );
}

function comparable(tool: Tool): string {
  const { version, description, parameters, output, requires, sideEffects, requiresConfirmation, limits, kind, documentation, origin, contentHash } = tool;
  return JSON.stringify({ version, description, kind, origin, parameters, output, requires, sideEffects, requiresConfirmation, limits, documentation: documentation.split("\n"), contentHash }, null, 2);
}

function short(value: unknown): string {
  return ((typeof value === "string" ? value.slice(0, 400) : JSON.stringify(value)) ?? "").slice(0, 300);
}

function About({ tool }: { tool: Tool }) {
  const facts: [string, string][] = [
    [t("tool.from"), tool.origin || tool.bundle],
    [t("tool.version"), tool.version],
    [t("tool.effects"), tool.sideEffects],
    [t("tool.requires"), tool.requires.join(", ") || "–"],
    [t("tool.limits"), tool.limits || "–"],
    [t("tool.models"), tool.models.offered ? t("tool.models.yes") : t("tool.models.no", { reason: tool.models.reason })],
    [t("tool.hash"), tool.contentHash],
  ];
  return (
    <Stack gap="md">
      <Group gap="xs">{tool.tags.map((tag) => <Badge key={tag} variant="outline" tt="none" c="var(--mantine-color-text)">{tag}</Badge>)}</Group>
      <Table aria-label={t("tool.tab.about")}>
        <Table.Tbody>
          {facts.map(([name, value]) => (
            <Table.Tr key={name}><Table.Th scope="row" w={140}>{name}</Table.Th><Table.Td className="wrap">{value}</Table.Td></Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {tool.warnings.length > 0 && (
        <Alert color="orange" variant="outline" title={t("tool.warnings")}>
          {tool.warnings.map((line) => <Text key={line} className="wrap">{line}</Text>)}
        </Alert>
      )}
      {tool.documentation && (<><Title order={3}>{t("tool.documentation")}</Title><Suspense fallback={<Text>{t("app.loading")}</Text>}><Markdown text={tool.documentation} /></Suspense></>)}
      {tool.examples.length > 0 && (<><Title order={3}>{t("tool.examples")}</Title><Value value={tool.examples} /></>)}
    </Stack>
  );
}

// The same call from elsewhere, with the arguments that are typed in now.
function Snippets({ tool, values }: { tool: Tool; values: Arguments }) {
  return (
    <Stack gap="md">
      {snippets(tool, values).map(({ title, text }) => (
        <div key={title}>
          <Group justify="space-between"><Text fw={600}>{title}</Text>
            <CopyButton value={text}>{({ copied, copy }) => <Button size="compact-sm" variant="default" onClick={copy}>{t(copied ? "tool.copied" : "tool.copy")}</Button>}</CopyButton>
          </Group>
          <Code block className="wrap">{text}</Code>
        </div>
      ))}
    </Stack>
  );
}

function Schemas({ tool }: { tool: Tool }) {
  return (
    <Stack gap="md">
      <Title order={3}>{t("tool.input")}</Title>
      <Value value={tool.parameters} />
      <Title order={3}>{t("tool.output")}</Title>
      {tool.output ? <Value value={tool.output} /> : <Text>{t("tool.output.any")}</Text>}
    </Stack>
  );
}
