// The list of tools: search as one types, filters, switches; only the rows in sight are in the document.
import { Alert, Badge, Button, Group, Select, Stack, Switch, Text, TextInput, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { api, take, type Tool } from "../api/client";
import { t } from "../messages";
import { Failure } from "../parts/failure";

const PAGE_SIZE = 200;
const ROW_HEIGHT = 64;
type Filter = "bundle" | "tag" | "kind" | "state" | "effects";

export function Tools() {
  const [text, setText] = useState("");
  const [asked] = useDebouncedValue(text.trim(), 150);
  const [filters, setFilters] = useState<Partial<Record<Filter, string>>>({});
  const listing = useToolPages(asked);
  const tools = useMemo(() => listing.data?.pages.flatMap((page) => page.tools as unknown as Tool[]) ?? [], [listing.data]);
  const shown = useMemo(() => tools.filter((tool) => matches(tool, filters)), [tools, filters]);
  const isIndexing = listing.data?.pages.some((page) => page.indexing) ?? false;

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
        <Choice filter="bundle" title={t("tools.filter.bundle")} values={unique(tools.map((tool) => tool.bundle))} {...{ filters, setFilters }} />
        <Choice filter="tag" title={t("tools.filter.tag")} values={unique(tools.flatMap((tool) => tool.tags))} {...{ filters, setFilters }} />
        <Choice filter="kind" title={t("tools.filter.kind")} values={unique(tools.map((tool) => tool.kind))} {...{ filters, setFilters }} />
        <Choice filter="effects" title={t("tools.filter.effects")} values={unique(tools.map((tool) => tool.sideEffects))} {...{ filters, setFilters }} />
        <Choice
          filter="state"
          title={t("tools.filter.state")}
          values={[t("tools.state.on"), t("tools.state.off"), t("tools.state.notOffered")]}
          {...{ filters, setFilters }}
        />
      </Group>
      {isIndexing && <Alert color="yellow" variant="outline">{t("tools.indexing")}</Alert>}
      {listing.error && <Failure message={listing.error.message} retry={() => void listing.refetch()} />}
      <Text size="sm" role="status">
        {t(listing.hasNextPage ? "tools.count.more" : "tools.count", { count: shown.length })}
      </Text>
      {listing.isSuccess && shown.length === 0 && (
        <Group>
          <Text>{t("tools.none")}</Text>
          <Button component={Link} href="/requests" variant="default">{t("tools.none.request")}</Button>
        </Group>
      )}
      <Rows tools={shown} more={listing.hasNextPage && !listing.isFetchingNextPage ? () => void listing.fetchNextPage() : undefined} />
    </Stack>
  );
}

function useToolPages(asked: string) {
  return useInfiniteQuery({
    queryKey: ["tools", asked],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      take(
        api.GET("/crib/tools", {
          params: { query: { includeDisabled: true, pageSize: PAGE_SIZE, ...(asked && { q: asked }), ...(pageParam && { pageToken: pageParam }) } },
          signal,
        }),
      ),
    getNextPageParam: (page) => page.nextPageToken ?? undefined,
    placeholderData: (before) => before,
  });
}

function Choice(given: {
  filter: Filter;
  title: string;
  values: string[];
  filters: Partial<Record<Filter, string>>;
  setFilters: (filters: Partial<Record<Filter, string>>) => void;
}) {
  const { filter, title, values, filters, setFilters } = given;
  if (values.length < 2 && !filters[filter]) return null;
  return (
    <Select
      w={150}
      label={title}
      placeholder={t("tools.filter.any")}
      clearable
      searchable={values.length > 8}
      data={values}
      value={filters[filter] ?? null}
      onChange={(value) => setFilters({ ...filters, [filter]: value ?? undefined })}
    />
  );
}

function Rows({ tools, more }: { tools: Tool[]; more: (() => void) | undefined }) {
  const frame = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({ count: tools.length, getScrollElement: () => frame.current, estimateSize: () => ROW_HEIGHT, overscan: 8 });
  const visible = rows.getVirtualItems();
  const last = visible.at(-1)?.index ?? -1;
  useEffect(() => {
    if (more && last >= tools.length - 20) more();
  }, [more, last, tools.length]);

  return (
    <div ref={frame} style={{ height: "max(16rem, calc(100vh - 20rem))", overflow: "auto" }} tabIndex={0} role="list" aria-label={t("nav.tools")}>
      <div style={{ height: rows.getTotalSize(), position: "relative" }} role="presentation">
        {visible.map((item) => {
          const tool = tools[item.index] as Tool;
          return (
            <div
              key={tool.address}
              role="listitem"
              aria-setsize={tools.length}
              aria-posinset={item.index + 1}
              className="row"
              style={{ position: "absolute", insetInline: 0, height: item.size, transform: `translateY(${item.start}px)` }}
            >
              <Row tool={tool} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Row({ tool }: { tool: Tool }) {
  return (
    <>
      <div style={{ minWidth: 0 }}>
        <Group gap="xs" wrap="nowrap">
          <Link href={`/tools/${encodeURIComponent(tool.address)}`} className="ellipsis">{tool.name}</Link>
          <Badge variant="outline" color="gray" tt="none" c="var(--mantine-color-text)">{tool.bundle}</Badge>
          {tool.requiresConfirmation && <Badge variant="outline" color="orange" tt="none" c="var(--mantine-color-text)">{t("tools.confirms")}</Badge>}
        </Group>
        <Text size="sm" className="ellipsis" title={tool.enabled ? undefined : tool.reason}>
          {tool.enabled ? tool.description : t("tool.off", { reason: tool.reason })}
        </Text>
      </div>
      <ToolSwitch tool={tool} />
    </>
  );
}

export function ToolSwitch({ tool }: { tool: Tool }) {
  const queries = useQueryClient();
  const turn = useMutation({
    mutationFn: (isEnabled: boolean) =>
      take(
        api.PATCH("/tools/bundles/{bundleID}/tools/{toolSlug}/version/{version}", {
          params: { path: { bundleID: tool.bundle, toolSlug: slugOf(tool), version: tool.version } },
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
export function slugOf(tool: Tool): string {
  const rest = tool.address.slice(tool.address.indexOf("/") + 1);
  return rest.slice(0, rest.lastIndexOf("@"));
}

function matches(tool: Tool, filters: Partial<Record<Filter, string>>): boolean {
  return (
    (!filters.bundle || tool.bundle === filters.bundle) &&
    (!filters.tag || tool.tags.includes(filters.tag)) &&
    (!filters.kind || tool.kind === filters.kind) &&
    (!filters.effects || tool.sideEffects === filters.effects) &&
    (!filters.state || stateOf(tool) === filters.state)
  );
}

function stateOf(tool: Tool): string {
  if (!tool.enabled) return t("tools.state.off");
  return tool.models.offered ? t("tools.state.on") : t("tools.state.notOffered");
}

function unique(values: string[]): string[] {
  return [...new Set(values.filter(Boolean))].sort();
}
