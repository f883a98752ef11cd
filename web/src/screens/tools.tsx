// The list of tools: search as one types, filters, switches. The server filters and sends slices of short rows, and only the
// rows in sight are in the document, so that 10,000 tools scroll as quickly as ten.
import { Alert, Badge, Button, Group, Select, Stack, Switch, Text, TextInput, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef, useState } from "react";
import { Link } from "wouter";
import { api, read, take, type ToolRow } from "../api/client";
import { type MessageId, t, word } from "../messages";
import { Empty } from "../parts/empty";
import { Failure } from "../parts/failure";

const SLICE = 100;
const ROW_HEIGHT = 64;
const FILTERS = ["bundle", "tag", "kind", "effects", "state"] as const;
type Filter = (typeof FILTERS)[number];
type Asked = Partial<Record<Filter | "q", string>>;
const TITLES: Record<Filter, MessageId> = {
  bundle: "tools.filter.bundle",
  tag: "tools.filter.tag",
  kind: "tools.filter.kind",
  effects: "tools.filter.effects",
  state: "tools.filter.state",
};
const STATES = ["enabled", "disabled", "notOffered"];
// Filters whose values are words of the server; the others are names that people gave.
const WORDS: Partial<Record<Filter, string>> = { kind: "tools.kind", effects: "tools.effects", state: "tools.state" };

interface Slice {
  tools: ToolRow[];
  total: number;
  indexing: boolean;
  filters?: Record<string, string[]>;
  unbuilt?: { address: string; name: string; reason: string; cure: string }[];
}

function sliceQuery(asked: Asked, offset: number) {
  return {
    queryKey: ["tools", "list", asked, offset],
    queryFn: ({ signal }: { signal: AbortSignal }) => read<Slice>("/ui/tools", { ...asked, offset, size: SLICE }, signal),
  };
}

export function Tools() {
  const [text, setText] = useState("");
  const [q] = useDebouncedValue(text.trim(), 150);
  const [filters, setFilters] = useState<Partial<Record<Filter, string>>>({});
  const asked: Asked = { ...filters, ...(q && { q }) };
  const first = useQuery({ ...sliceQuery(asked, 0), placeholderData: (before) => before });
  const { total = 0, indexing, filters: choices = {}, unbuilt = [] } = first.data ?? {};

  return (
    <Stack gap="sm">
      <Title order={2}>{t("nav.tools")}</Title>
      <TextInput
        type="search"
        label={t("tools.search")}
        description={t("tools.search.hint")}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Group gap="xs" align="end">
        {FILTERS.map((filter) => (
          <Choice
            key={filter}
            title={t(TITLES[filter])}
            values={(filter === "state" ? STATES : (choices[filter] ?? [])).map((value) => ({ value, label: labelOf(filter, value) }))}
            value={filters[filter]}
            choose={(value) => setFilters({ ...filters, [filter]: value })}
          />
        ))}
      </Group>
      {indexing && <Alert color="yellow" variant="outline">{t("tools.indexing")}</Alert>}
      {first.error && <Failure message={first.error.message} retry={() => void first.refetch()} />}
      {unbuilt.map((folder) => (
        <Alert key={folder.address} color="orange" variant="outline">
          <Text className="wrap">{t("tools.unbuilt", { name: folder.name, reason: folder.reason, cure: folder.cure })}</Text>
        </Alert>
      ))}
      <Text size="sm" role="status">{first.data ? t("tools.count", { count: total }) : t("app.loading")}</Text>
      {first.isSuccess && total === 0 && (
        <Empty text={t("tools.none")}><Button component={Link} href="/requests" variant="default">{t("tools.none.request")}</Button></Empty>
      )}
      {total > 0 && <Rows key={JSON.stringify(asked)} asked={asked} total={total} />}
    </Stack>
  );
}

function labelOf(filter: Filter, value: string): string {
  const group = WORDS[filter];
  return group ? word(group, value) : value;
}

function Choice({ title, values, value, choose }: { title: string; values: { value: string; label: string }[]; value: string | undefined; choose: (value: string | undefined) => void }) {
  if (values.length < 2 && !value) return null;
  return (
    <Select
      w={150}
      label={title}
      allowDeselect={false}
      searchable={values.length > 8}
      limit={100}
      data={[{ value: "", label: t("tools.filter.any") }, ...values]}
      value={value ?? ""}
      onChange={(next) => choose(next || undefined)}
    />
  );
}

function Rows({ asked, total }: { asked: Asked; total: number }) {
  const frame = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({ count: total, getScrollElement: () => frame.current, estimateSize: () => ROW_HEIGHT, overscan: 8 });
  const visible = rows.getVirtualItems();
  const from = Math.floor((visible[0]?.index ?? 0) / SLICE);
  const to = Math.floor((visible.at(-1)?.index ?? 0) / SLICE);
  const places = Array.from({ length: to - from + 1 }, (_, step) => (from + step) * SLICE);
  const slices = useQueries({ queries: places.map((offset) => sliceQuery(asked, offset)) });
  const failed = slices.find((slice) => slice.error);

  return (
    <>
      {failed?.error && <Failure message={failed.error.message} retry={() => void failed.refetch()} />}
      <div ref={frame} className="rows" tabIndex={0} role="list" aria-label={t("nav.tools")}>
        <div style={{ height: rows.getTotalSize(), position: "relative" }} role="presentation">
          {visible.map((item) => {
            const place = Math.floor(item.index / SLICE) - from;
            const tool = slices[place]?.data?.tools[item.index % SLICE];
            return (
              <div
                key={item.key}
                role="listitem"
                aria-setsize={total}
                aria-posinset={item.index + 1}
                className="row"
                style={{ position: "absolute", insetInline: 0, height: item.size, transform: `translateY(${item.start}px)` }}
              >
                {tool ? <Row tool={tool} /> : <Text size="sm">{t("app.loading")}</Text>}
              </div>
            );
          })}
        </div>
      </div>
    </>
  );
}

// A tool that cannot be used as it is says why, instead of what it does.
function Row({ tool }: { tool: ToolRow }) {
  const hidden = tool.offered ? "" : t("tool.hidden", { reason: tool.notOffered });
  const reason = tool.enabled ? hidden : t("tool.off", { reason: tool.reason });
  return (
    <>
      <div style={{ minWidth: 0 }}>
        <Group gap="xs" wrap="nowrap">
          <Link href={`/tools/${encodeURIComponent(tool.address)}`} className="ellipsis">{tool.name}</Link>
          <Badge variant="outline" color="gray" tt="none" c="var(--mantine-color-text)" title={tool.origin || tool.bundle}>{tool.bundle}</Badge>
          <Text size="xs" visibleFrom="sm" className="ellipsis">{t("tools.version", { version: tool.version })}</Text>
          {tool.foundBy === "relevance" && <Badge variant="outline" color="blue" tt="none" c="var(--mantine-color-text)">{t("tools.related")}</Badge>}
          {tool.requiresConfirmation && <Badge variant="outline" color="orange" tt="none" c="var(--mantine-color-text)">{t("tools.confirms")}</Badge>}
          <Text size="xs" visibleFrom="md" c="dimmed" className="ellipsis">{tool.origin}</Text>
        </Group>
        <Text size="sm" className="ellipsis" title={reason || tool.description}>{reason || tool.description}</Text>
      </div>
      <ToolSwitch tool={tool} />
    </>
  );
}

export function ToolSwitch({ tool }: { tool: Pick<ToolRow, "name" | "address" | "bundleID" | "version" | "enabled"> }) {
  const queries = useQueryClient();
  const turn = useMutation({
    mutationFn: (isEnabled: boolean) =>
      take(
        api.PATCH("/tools/bundles/{bundleID}/tools/{toolSlug}/version/{version}", {
          params: { path: { bundleID: tool.bundleID, toolSlug: slugOf(tool), version: tool.version } },
          body: { isEnabled },
        }),
      ),
    onSettled: () => queries.invalidateQueries({ queryKey: ["tools"] }),
  });
  return (
    <Switch
      aria-label={t("tools.switch", { name: tool.name })}
      checked={turn.isPending ? turn.variables : tool.enabled}
      onChange={(event) => turn.mutate(event.currentTarget.checked)}
      error={turn.error?.message}
    />
  );
}

// An address is bundle/slug@version.
export function slugOf(tool: { address: string }): string {
  const rest = tool.address.slice(tool.address.indexOf("/") + 1);
  return rest.slice(0, rest.lastIndexOf("@"));
}
