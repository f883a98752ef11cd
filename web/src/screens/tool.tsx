// One tool: try it with a form or JSON, read about it, and copy how to call it from elsewhere.
import { Alert, Anchor, Badge, Button, Code, CopyButton, Group, SegmentedControl, Stack, Table, Tabs, Text, Title } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useRef, useState } from "react";
import { Link, useParams } from "wouter";
import { api, type CallResult, Refusal, refusalOf, take, type Tool } from "../api/client";
import { t } from "../messages";
import { Dialog } from "../parts/dialog";
import { Failure } from "../parts/failure";
import { ExplainLadder } from "../parts/explain-ladder";
import { ResultView, Value } from "../parts/result-view";
import { snippets } from "../snippets";
import { ToolSwitch } from "./tools";

const SchemaForm = lazy(() => import("../parts/schema-form"));
const JsonEditor = lazy(() => import("../parts/json-editor"));

export default function ToolScreen() {
  const address = decodeURIComponent(useParams<{ address: string }>().address);
  const found = useQuery({
    queryKey: ["tools", "one", address],
    queryFn: async ({ signal }) => {
      const page = await take(api.GET("/crib/tools", { params: { query: { name: address, includeDisabled: true } }, signal }));
      const tool = page.tools[0] as unknown as Tool | undefined;
      if (!tool) throw new Refusal({ detail: t("tool.missing", { name: address }) });
      return tool;
    },
  });
  if (found.error) return <Failure message={found.error.message} retry={() => void found.refetch()} />;
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
      <Tabs defaultValue="try" keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="try">{t("tool.tab.try")}</Tabs.Tab>
          <Tabs.Tab value="about">{t("tool.tab.about")}</Tabs.Tab>
          <Tabs.Tab value="schema">{t("tool.tab.schema")}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="try" pt="md"><Tester tool={tool} /></Tabs.Panel>
        <Tabs.Panel value="about" pt="md"><About tool={tool} /></Tabs.Panel>
        <Tabs.Panel value="schema" pt="md"><Schemas tool={tool} /></Tabs.Panel>
      </Tabs>
    </Stack>
  );
}

type Arguments = Record<string, unknown>;

function Tester({ tool }: { tool: Tool }) {
  const [view, setView] = useState<"form" | "json">("form");
  const [values, setValues] = useState<Arguments>({});
  const [text, setText] = useState("{}");
  const [mistake, setMistake] = useState("");
  const [question, ask] = useState<{ reason: string; confirmation: string } | null>(null);
  const stop = useRef<AbortController>(null);
  const takesArguments = Object.keys((tool.parameters.properties as object | undefined) ?? {}).length > 0 || tool.parameters.additionalProperties !== false;

  const run = useMutation({
    mutationFn: async (confirmation: string | undefined): Promise<CallResult> => {
      stop.current = new AbortController();
      const answer = await api.POST("/crib/call", {
        body: { name: tool.address, args: values, ...(confirmation && { confirmation }) },
        signal: stop.current.signal,
      });
      if (answer.data) return answer.data as CallResult;
      // A failed call is a result too; its problem details carry one.
      const failed = asFailure(answer.error);
      if (failed) return failed;
      throw refusalOf(answer.error, answer.response);
    },
    onSuccess: (result) => {
      if (result.ok || result.error.type !== "CONFIRMATION_REQUIRED") return;
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
      const read: unknown = JSON.parse(next);
      if (typeof read !== "object" || read === null || Array.isArray(read)) throw new Error("an object {…} is needed");
      setValues(read as Arguments);
      setMistake("");
    } catch (problem) {
      setMistake(t("tool.json.invalid", { reason: (problem as Error).message }));
    }
  }

  return (
    <Stack gap="md">
      <Group justify="space-between">
        <Title order={3}>{t("tool.arguments")}</Title>
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
      </Group>
      <Suspense fallback={<Text>{t("app.loading")}</Text>}>
        {view === "json" ? (
          <JsonEditor value={text} onChange={write} label={t("tool.arguments")} />
        ) : takesArguments ? (
          <SchemaForm schema={tool.parameters} value={values} onChange={setValues} />
        ) : (
          <Text>{t("tool.arguments.none")}</Text>
        )}
      </Suspense>
      {mistake && <Failure message={mistake} />}
      <Group>
        <Button onClick={() => run.mutate(undefined)} loading={run.isPending} disabled={Boolean(mistake)}>{t("tool.run")}</Button>
        {run.isPending && <Button variant="default" onClick={() => stop.current?.abort()}>{t("tool.stop")}</Button>}
        <Button variant="default" onClick={() => explain.mutate()} disabled={Boolean(mistake)}>{t("tool.explain")}</Button>
      </Group>
      {explain.error && <Failure message={explain.error.message} />}
      {explain.data && <ExplainLadder explanation={explain.data} />}
      <section aria-live="polite" aria-label={t("tool.result")}>
        {run.error && <Failure message={run.error.message} />}
        {run.data && <ResultView result={run.data} />}
      </section>
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

function asFailure(error: unknown): CallResult | null {
  if (typeof error !== "object" || error === null || !("error" in error) || !("intents" in error)) return null;
  return error as CallResult;
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
      {tool.documentation && (<><Title order={3}>{t("tool.documentation")}</Title><Value value={tool.documentation} /></>)}
      {tool.examples.length > 0 && (<><Title order={3}>{t("tool.examples")}</Title><Value value={tool.examples} /></>)}
      <Title order={3}>{t("tool.tab.copy")}</Title>
      {snippets(tool, {}).map(({ title, text }) => (
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
