// One's own runs of a tool, newest first: run one again, or begin with its arguments.
import { Badge, Button, Card, Code, Group, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { read, send, type Tool } from "../api/client";
import { moment, t } from "../messages";
import type { Arguments } from "./arguments-editor";
import { Empty } from "./empty";
import { Failure } from "./failure";

export interface Run {
  id: string;
  arguments: Arguments;
  // Where values were masked when the run was stored; null for a run of which that is not known.
  masked: string[][] | null;
  ok: boolean;
  outcome: string;
  at: number;
}

export function RunHistory({ tool, use }: { tool: Tool; use: (run: Run, isRun: boolean) => void }) {
  const queries = useQueryClient();
  const found = useQuery({ queryKey: ["runs", tool.address], queryFn: ({ signal }) => read<{ enabled: boolean; runs: Run[] }>("/ui/runs", { tool: tool.address }, signal) });
  const clear = useMutation({ mutationFn: () => send("DELETE", "/ui/runs"), onSettled: () => queries.invalidateQueries({ queryKey: ["runs"] }) });
  if (found.error) return <Failure message={found.error.message} retry={() => void found.refetch()} />;
  if (!found.data) return <Text role="status">{t("app.loading")}</Text>;
  const { enabled, runs } = found.data;
  return (
    <Stack gap="sm">
      {!enabled && <Text>{t("tool.history.off")}</Text>}
      {enabled && runs.length === 0 && <Empty text={t("tool.history.none")} />}
      {runs.map((run) => (
        <Card key={run.id} component="article" withBorder padding="sm" aria-label={moment(run.at)}>
          <Group gap="xs" justify="space-between">
            <Group gap="xs">
              <Badge color={run.ok ? "teal.9" : "red.9"}>{t(run.ok ? "tool.result.ok" : "tool.result.failed")}</Badge>
              <Text size="sm">{moment(run.at)}</Text>
            </Group>
            <Group gap="xs">
              <Button size="compact-sm" onClick={() => use(run, true)}>{t("tool.history.again")}</Button>
              <Button size="compact-sm" variant="default" onClick={() => use(run, false)}>{t("tool.history.edit")}</Button>
            </Group>
          </Group>
          <Code block className="wrap" mt="xs">{JSON.stringify(run.arguments)}</Code>
          <Text size="sm" className="wrap" mt={4}>{run.outcome}</Text>
          {run.masked?.length !== 0 && <Text size="sm" c="dimmed">{t("tool.history.masked")}</Text>}
        </Card>
      ))}
      {runs.length > 0 && <Group><Button variant="default" onClick={() => clear.mutate()}>{t("tool.history.clear")}</Button></Group>}
    </Stack>
  );
}

// Arguments without the values at these paths; an item of a list becomes empty, because the others keep their places.
export function without(values: Arguments, paths: readonly string[][]): Arguments {
  const copy = structuredClone(values);
  for (const path of paths) {
    let place: unknown = copy;
    for (const step of path.slice(0, -1)) place = (place as Record<string, unknown> | null)?.[step];
    const last = path.at(-1);
    if (last === undefined || typeof place !== "object" || place === null) continue;
    if (Array.isArray(place)) place[Number(last)] = "";
    else delete (place as Record<string, unknown>)[last];
  }
  return copy;
}
