// What was called, how long it took, what failed and what it cost, from the journal.
import { Card, Group, NativeSelect, SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { read } from "../api/client";
import { type MessageId, t, word } from "../messages";
import { callerName } from "../parts/caller";
import { Failure } from "../parts/failure";
import { shortNumber } from "../parts/numbers";
import { AmountBars, Lines, StackedBars } from "../parts/plots";

interface Figures {
  calls: number;
  failed: number;
  refused: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
  costs: Record<string, number>;
  errors: Record<string, number>;
}
interface Named extends Figures {
  name: string;
  holder?: string;
}
interface Span extends Figures {
  from: number;
}
interface Activity {
  since: number;
  until: number;
  all: Figures;
  spans: Span[];
  tools: Named[];
  callers: Named[];
}

const HOURS = ["1", "24", "168", "720"] as const;
// The most frequent kinds of errors have colours of their own; the others share the last.
const MAX_KINDS = 4;
const MAX_BARS = 12;

export default function ActivityScreen() {
  const [hours, setHours] = useState<string>("24");
  const found = useQuery({ queryKey: ["activity", hours], queryFn: ({ signal }) => read<Activity>("/ui/activity", { hours }, signal), refetchInterval: 10_000, placeholderData: (before) => before });
  const activity = found.data;
  return (
    <Stack gap="md">
      <Group justify="space-between" align="end">
        <Title order={2}>{t("nav.activity")}</Title>
        <NativeSelect label={t("activity.hours")} data={HOURS.map((value) => ({ value, label: word("activity.hours", value) }))} value={hours} onChange={(event) => setHours(event.currentTarget.value)} />
      </Group>
      {found.error && <Failure message={found.error.message} retry={() => void found.refetch()} />}
      {!activity && !found.error && <Text role="status">{t("app.loading")}</Text>}
      {activity && <Text role="status">{activity.all.calls === 0 ? t("activity.none") : summary(activity.all)}</Text>}
      {activity && activity.all.calls > 0 && <Plots activity={activity} />}
    </Stack>
  );
}

function summary(all: Figures): string {
  return t("activity.summary", { calls: t("activity.calls.count", { count: all.calls }), failed: all.failed, refused: all.refused });
}

function Plots({ activity }: { activity: Activity }) {
  const { since, until, all, spans } = activity;
  const kinds = Object.keys(all.errors).slice(0, MAX_KINDS);
  const others = Object.keys(all.errors).slice(MAX_KINDS);
  const errorSeries = [
    ...kinds.map((kind, place) => ({ kind: `error${place}`, name: word("error", kind) })),
    ...(others.length ? [{ kind: "errorOthers", name: t("activity.errors.others") }] : []),
  ];
  return (
    <>
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <Section title={t("activity.calls")}>
          <StackedBars
            unit={t("activity.count")}
            frame={{
              since, until,
              label: t("activity.calls.alt", { calls: t("activity.calls.count", { count: all.calls }), failed: all.failed }),
              series: [{ kind: "first", name: t("activity.succeeded") }, { kind: "failed", name: t("activity.failed") }],
            }}
            spans={spans.map((span) => ({ from: span.from, values: [span.calls - span.failed, span.failed] }))}
          />
        </Section>
        <Section title={t("activity.latency")}>
          <Lines
            unit={t("activity.ms")}
            frame={{
              since, until,
              label: t("activity.latency.alt", { p50: shown(all.p50), p95: shown(all.p95), p99: shown(all.p99) }),
              series: [{ kind: "p50", name: t("activity.half") }, { kind: "p95", name: t("activity.of100", { count: 95 }) }, { kind: "p99", name: t("activity.of100", { count: 99 }) }],
            }}
            spans={spans.map((span) => ({ from: span.from, values: [span.p50, span.p95, span.p99] }))}
          />
        </Section>
        {all.failed > 0 && (
          <Section title={t("activity.errors")}>
            <StackedBars
              unit={t("activity.failed")}
              frame={{ since, until, label: t("activity.errors.alt", { errors: errorWords(all.errors) }), series: errorSeries }}
              spans={spans.map((span) => ({
                from: span.from,
                values: [...kinds.map((kind) => span.errors[kind] ?? 0), ...(others.length ? [others.reduce((sum, kind) => sum + (span.errors[kind] ?? 0), 0)] : [])],
              }))}
            />
          </Section>
        )}
        {Object.keys(all.costs).map((currency) => (
          <Section key={currency} title={t("activity.costs", { currency })}>
            <Costs title={t("activity.tools")} rows={activity.tools} currency={currency} />
            <Costs title={t("activity.callers")} rows={activity.callers} currency={currency} />
          </Section>
        ))}
      </SimpleGrid>
      <FiguresTable title={t("activity.tools")} rows={activity.tools} />
      <FiguresTable title={t("activity.callers")} rows={activity.callers} />
    </>
  );
}

function errorWords(errors: Record<string, number>): string {
  return Object.entries(errors).map(([kind, count]) => t("activity.errors.one", { name: word("error", kind), count })).join(", ");
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Card withBorder component="section" aria-label={title} padding="sm">
      <Title order={3} size="h4" mb="xs">{title}</Title>
      {children}
    </Card>
  );
}

function Costs({ title, rows, currency }: { title: string; rows: Named[]; currency: string }) {
  const found = rows.flatMap((row) => (row.costs[currency] ? [{ name: nameOf(row), amount: row.costs[currency] }] : [])).sort((one, other) => other.amount - one.amount);
  if (found.length === 0) return null;
  return (
    <>
      <Title order={4} size="h6" mt="xs">{title}</Title>
      <AmountBars rows={found.slice(0, MAX_BARS)} unit={currency} />
    </>
  );
}

function nameOf(row: Named): string {
  return row.holder === undefined ? row.name : callerName(row.name, row.holder);
}

function FiguresTable({ title, rows }: { title: string; rows: Named[] }) {
  const heads: MessageId[] = ["activity.name", "activity.count", "activity.failed", "activity.p50", "activity.p95", "activity.p99", "activity.cost"];
  return (
    <section aria-label={title}>
      <Title order={3} size="h4">{title}</Title>
      <Table.ScrollContainer minWidth={560} type="native" tabIndex={0}>
        <Table striped>
          <Table.Thead><Table.Tr>{heads.map((head, place) => <Table.Th key={head} scope="col" ta={place ? "end" : "start"}>{t(head)}</Table.Th>)}</Table.Tr></Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={row.name}>
                <Table.Th scope="row" className="words" title={row.name}>{nameOf(row)}</Table.Th>
                {[shortNumber(row.calls), shortNumber(row.failed), shown(row.p50), shown(row.p95), shown(row.p99), costsOf(row)].map((text, place) => <Table.Td key={place} ta="end">{text}</Table.Td>)}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </section>
  );
}

function costsOf(row: Named): string {
  return Object.entries(row.costs).map(([unit, amount]) => t("plot.amount", { amount, unit })).join(", ") || "–";
}

function shown(value: number | null): string {
  return value === null ? "–" : shortNumber(value);
}
