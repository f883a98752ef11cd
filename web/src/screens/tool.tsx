// One tool: try it with a form and JSON, read about it, and copy how to call it from elsewhere.
import { Alert, Anchor, Badge, Button, Code, CopyButton, Group, NativeSelect, Stack, Tabs, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Link, useParams } from "wouter";
import { read, readTool, type Tool, type ToolRow } from "../api/client";
import { t, word } from "../messages";
import { type Arguments, argumentsOf } from "../parts/arguments-editor";
import { DiffView } from "../parts/diff-view";
import { Facts, queryOf } from "../parts/facts";
import { Failure } from "../parts/failure";
import { ObstaclesOf } from "../parts/obstacles";
import { Value } from "../parts/result-view";
import { RunHistory, type Run, without } from "../parts/run-history";
import { type Order, Tester } from "../parts/tester";
import { snippets } from "../snippets";
import { useFeatures } from "./index";
import { ToolSwitch } from "./tools";

const StoredVersion = lazy(() => import("../parts/stored-version"));
const Markdown = lazy(() => import("../parts/markdown"));

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
  const [state, change] = useState(() => argumentsOf({}));
  const [order, give] = useState<Order>({ number: 0, missing: [], isRun: false });
  // Arguments of an earlier run: what was masked is left out, to be typed again, and only a complete run is run at once.
  function use(run: Run, isRun: boolean) {
    change(argumentsOf(without(run.arguments, run.masked ?? [])));
    give({ number: order.number + 1, missing: run.masked ?? [], isRun: isRun && run.masked?.length === 0 });
    setTab("try");
  }
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
      {!tool.enabled && <Alert color="orange" variant="outline"><Text className="wrap">{t("tool.off", { reason: tool.reason })} {tool.cure}</Text></Alert>}
      {tool.enabled && !tool.models.offered && <Alert color="orange" variant="outline"><Text className="wrap">{t("tool.hidden", { reason: tool.models.reason })}</Text></Alert>}
      {tool.enabled && <ObstaclesOf tool={tool} />}
      <Tabs value={tab} onChange={setTab} keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="try">{t("tool.tab.try")}</Tabs.Tab>
          <Tabs.Tab value="about">{t("tool.tab.about")}</Tabs.Tab>
          <Tabs.Tab value="schema">{t("tool.tab.schema")}</Tabs.Tab>
          <Tabs.Tab value="copy">{t("tool.tab.copy")}</Tabs.Tab>
          {features.has("history") && <Tabs.Tab value="history">{t("tool.tab.history")}</Tabs.Tab>}
          {others.length > 0 && <Tabs.Tab value="versions">{t("tool.tab.versions")}</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="try" pt="md" keepMounted><Tester tool={tool} state={state} change={change} order={order} /></Tabs.Panel>
        <Tabs.Panel value="about" pt="md"><About tool={tool} /><Suspense><StoredVersion tool={tool} /></Suspense></Tabs.Panel>
        <Tabs.Panel value="schema" pt="md"><Schemas tool={tool} /></Tabs.Panel>
        <Tabs.Panel value="copy" pt="md"><Snippets tool={tool} values={state.values} /></Tabs.Panel>
        <Tabs.Panel value="history" pt="md"><RunHistory tool={tool} use={use} /></Tabs.Panel>
        <Tabs.Panel value="versions" pt="md">{others.length > 0 && <Versions tool={tool} others={others} />}</Tabs.Panel>
      </Tabs>
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

function About({ tool }: { tool: Tool }) {
  const facts: [string, string][] = [
    [t("tool.from"), tool.origin || tool.bundle],
    [t("tool.version"), tool.version],
    [t("tool.effects"), word("tools.effects", tool.sideEffects) || t("tool.effects.unsaid")],
    [t("tool.requires"), tool.requires.join(", ") || "–"],
    [t("tool.limits"), tool.limits || "–"],
    [t("tool.models"), tool.models.offered ? t("tool.models.yes") : t("tool.models.no", { reason: tool.models.reason })],
    ...queryOf(tool),
    [t("tool.hash"), tool.contentHash],
  ];
  return (
    <Stack gap="md">
      <Group gap="xs">{tool.tags.map((tag) => <Badge key={tag} variant="outline" tt="none" c="var(--mantine-color-text)">{tag}</Badge>)}</Group>
      <Facts rows={facts} label={t("tool.tab.about")} />
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
