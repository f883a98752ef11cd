// What was called, how long it took and what it cost, as plots of our own: plain SVG, each with its figures as text.
import { Group, NativeSelect, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { read } from "../api/client";
import { type MessageId, t } from "../messages";
import { Failure } from "../parts/failure";

interface Figures {
  calls: number;
  failed: number;
  refused: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
  costs: Record<string, number>;
}
interface Named extends Figures {
  name: string;
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
  errors: { name: string; count: number }[];
}

const HOURS = ["1", "24", "168", "720"] as const;
const [WIDTH, HEIGHT, LEFT, BOTTOM] = [720, 180, 48, 20];

export default function ActivityScreen() {
  const [hours, setHours] = useState<string>("24");
  const found = useQuery({ queryKey: ["activity", hours], queryFn: ({ signal }) => read<Activity>("/ui/activity", { hours }, signal), refetchInterval: 10_000, placeholderData: (before) => before });
  const activity = found.data;
  return (
    <Stack gap="md">
      <Title order={2}>{t("nav.activity")}</Title>
      <NativeSelect w="fit-content" label={t("activity.hours")} data={HOURS.map((value) => ({ value, label: t(`activity.${value}` as MessageId) }))} value={hours} onChange={(event) => setHours(event.currentTarget.value)} />
      {found.error && <Failure message={found.error.message} retry={() => void found.refetch()} />}
      {activity && (
        <Text role="status">{activity.all.calls === 0 ? t("activity.none") : t("activity.summary", { calls: activity.all.calls, failed: activity.all.failed, refused: activity.all.refused })}</Text>
      )}
      {activity && activity.all.calls > 0 && (
        <>
          <Group grow align="start" preventGrowOverflow={false}>
            <section aria-label={t("activity.calls")}><Title order={3} size="h4">{t("activity.calls")}</Title><CallsPlot activity={activity} /></section>
            <section aria-label={t("activity.latency")}><Title order={3} size="h4">{t("activity.latency")}</Title><LatencyPlot activity={activity} /></section>
          </Group>
          <FiguresTable title={t("activity.tools")} rows={activity.tools} />
          <FiguresTable title={t("activity.callers")} rows={activity.callers} />
          {activity.errors.length > 0 && (
            <section aria-label={t("activity.errors")}>
              <Title order={3} size="h4">{t("activity.errors")}</Title>
              <Table><Table.Tbody>{activity.errors.map((error) => <Table.Tr key={error.name}><Table.Th scope="row" className="wrap">{error.name}</Table.Th><Table.Td>{error.count}</Table.Td></Table.Tr>)}</Table.Tbody></Table>
            </section>
          )}
        </>
      )}
    </Stack>
  );
}

function CallsPlot({ activity: { spans, all, since, until } }: { activity: Activity }) {
  const most = Math.max(1, ...spans.map((span) => span.calls));
  const step = (WIDTH - LEFT) / spans.length;
  const tall = (count: number) => (count / most) * (HEIGHT - BOTTOM);
  return (
    <svg className="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={t("activity.calls.alt", { calls: all.calls, failed: all.failed })}>
      <Axes most={most} since={since} until={until} />
      {spans.map((span, place) => (
        <g key={span.from}>
          <title>{t("activity.span", { from: clock(span.from), calls: span.calls, failed: span.failed })}</title>
          <rect className="calls" x={LEFT + place * step + 1} width={Math.max(1, step - 2)} y={HEIGHT - BOTTOM - tall(span.calls)} height={tall(span.calls)} />
          <rect className="failed" x={LEFT + place * step + 1} width={Math.max(1, step - 2)} y={HEIGHT - BOTTOM - tall(span.failed)} height={tall(span.failed)} />
        </g>
      ))}
    </svg>
  );
}

function LatencyPlot({ activity: { spans, all, since, until } }: { activity: Activity }) {
  const most = Math.max(1, ...spans.map((span) => span.p95 ?? 0));
  const step = (WIDTH - LEFT) / spans.length;
  const points = (key: "p50" | "p95") =>
    spans.flatMap((span, place) => {
      const value = span[key];
      return value === null ? [] : [[LEFT + (place + 0.5) * step, HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM)] as const];
    });
  return (
    <svg className="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={t("activity.latency.alt", { p50: shown(all.p50), p95: shown(all.p95) })}>
      <Axes most={Number(most.toPrecision(3))} since={since} until={until} />
      {(["p50", "p95"] as const).map((key) => (
        <g key={key} className={key}>
          <text x={LEFT + 8 + (key === "p50" ? 0 : 40)} y={11} className="legend">{key}</text>
          <polyline points={points(key).map((point) => point.join(",")).join(" ")} />
          {points(key).map(([x, y]) => <circle key={x} cx={x} cy={y} r={3} fill="none" strokeWidth={2} strokeDasharray="none" />)}
        </g>
      ))}
    </svg>
  );
}

function Axes({ most, since, until }: { most: number; since: number; until: number }) {
  return (
    <>
      <line className="axis" x1={LEFT} x2={LEFT} y1={0} y2={HEIGHT - BOTTOM} />
      <line className="axis" x1={LEFT} x2={WIDTH} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM} />
      <text x={LEFT - 4} y={11} textAnchor="end">{most}</text>
      <text x={LEFT - 4} y={HEIGHT - BOTTOM} textAnchor="end">0</text>
      <text x={LEFT} y={HEIGHT - 4}>{clock(since)}</text>
      <text x={WIDTH} y={HEIGHT - 4} textAnchor="end">{clock(until)}</text>
    </>
  );
}

function FiguresTable({ title, rows }: { title: string; rows: Named[] }) {
  const heads: MessageId[] = ["activity.name", "activity.count", "activity.failed", "activity.p50", "activity.p95", "activity.p99", "activity.cost"];
  const most: Record<string, number> = {};
  for (const { costs } of rows) for (const [currency, amount] of Object.entries(costs)) most[currency] = Math.max(most[currency] ?? 0, amount);
  return (
    <section aria-label={title}>
      <Title order={3} size="h4">{title}</Title>
      <Table.ScrollContainer minWidth={520} type="native" tabIndex={0}>
        <Table>
          <Table.Thead><Table.Tr>{heads.map((head) => <Table.Th key={head} scope="col">{t(head)}</Table.Th>)}</Table.Tr></Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={row.name}>
                <Table.Th scope="row" className="wrap">{row.name}</Table.Th>
                <Table.Td>{row.calls}</Table.Td>
                <Table.Td>{row.failed}</Table.Td>
                <Table.Td>{shown(row.p50)}</Table.Td>
                <Table.Td>{shown(row.p95)}</Table.Td>
                <Table.Td>{shown(row.p99)}</Table.Td>
                <Table.Td>{Object.keys(row.costs).length ? <CostBars costs={row.costs} most={most} /> : "–"}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </section>
  );
}

// One bar for each currency, as long as its share of the highest cost of the table.
function CostBars({ costs, most }: { costs: Record<string, number>; most: Record<string, number> }) {
  return Object.entries(costs).map(([currency, amount]) => (
    <div key={currency}>
      {`${amount} ${currency}`}
      <svg className="plot cost" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden>
        <rect className="calls" height={6} width={most[currency] ? (100 * amount) / most[currency] : 0} />
      </svg>
    </div>
  ));
}

function shown(value: number | null): string {
  return value === null ? "–" : value < 10 ? value.toFixed(1) : String(Math.round(value));
}

function clock(moment: number): string {
  return new Date(moment * 1000).toLocaleString(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
}
