// Plots of our own: plain SVG as wide as its place, so that its words stay as large as all others; each has its figures as text.
import { useElementSize } from "@mantine/hooks";
import type { ReactNode } from "react";
import { writeNumber } from "../language";
import { moment, t } from "../messages";
import { shortNumber } from "./numbers";

const [HEIGHT, LEFT, TOP, BOTTOM] = [190, 48, 8, 22];
const FLOOR = HEIGHT - BOTTOM;
const MIN_WIDTH = 240;
// Both ends of the axis fit beside each other on a narrow page.
const AXIS: Intl.DateTimeFormatOptions = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };

export interface Series {
  // The class that gives it its colour.
  kind: string;
  name: string;
}
export interface Frame {
  since: number;
  until: number;
  label: string;
  series: Series[];
}

// Bars over time, those of one moment on top of each other.
export function StackedBars({ frame, spans, unit }: { frame: Frame; spans: { from: number; values: number[] }[]; unit: string }) {
  const most = niceTop(Math.max(1, ...spans.map((span) => span.values.reduce((sum, value) => sum + value, 0))));
  return (
    <Plot frame={frame} most={most} unit={unit}>
      {(width) => {
        const step = (width - LEFT) / spans.length;
        return spans.map((span, place) => {
          let below = 0;
          return (
            <g key={span.from}>
              <title>{`${moment(span.from)}: ${frame.series.map((one, number) => `${one.name} ${writeNumber(span.values[number] ?? 0)}`).join(", ")}`}</title>
              {span.values.map((value, number) => {
                const height = (value / most) * (FLOOR - TOP);
                below += height;
                return value > 0 && <rect key={number} className={frame.series[number]?.kind} x={LEFT + place * step + 0.5} width={Math.max(1, step - 1)} y={FLOOR - below} height={height} />;
              })}
            </g>
          );
        });
      }}
    </Plot>
  );
}

// Lines over time; a moment without a value is passed over.
export function Lines({ frame, spans, unit }: { frame: Frame; spans: { from: number; values: (number | null)[] }[]; unit: string }) {
  const most = niceTop(Math.max(1, ...spans.flatMap((span) => span.values.map((value) => value ?? 0))));
  return (
    <Plot frame={frame} most={most} unit={unit}>
      {(width) => {
        const step = (width - LEFT) / spans.length;
        return frame.series.map((one, number) => {
          const points = spans.flatMap((span, place) => {
            const value = span.values[number];
            return value === null || value === undefined ? [] : [{ x: LEFT + (place + 0.5) * step, y: FLOOR - (value / most) * (FLOOR - TOP), value, from: span.from }];
          });
          return (
            <g key={one.kind} className={one.kind}>
              <polyline points={points.map((point) => `${point.x},${point.y}`).join(" ")} />
              {points.map((point) => <circle key={point.x} cx={point.x} cy={point.y} r={3}><title>{`${moment(point.from)}: ${one.name} ${shortNumber(point.value)} ${unit}`}</title></circle>)}
            </g>
          );
        });
      }}
    </Plot>
  );
}

function Plot({ frame, most, unit, children }: { frame: Frame; most: number; unit: string; children: (width: number) => ReactNode }) {
  const { ref, width: measured } = useElementSize();
  const width = Math.max(MIN_WIDTH, Math.floor(measured));
  return (
    <div ref={ref}>
      <ul className="legend" aria-hidden>
        {frame.series.map((one) => <li key={one.kind}><span className={`swatch ${one.kind}`} />{one.name}</li>)}
      </ul>
      <svg className="plot" viewBox={`0 0 ${width} ${HEIGHT}`} height={HEIGHT} role="img" aria-label={frame.label}>
        {[0, 0.5, 1].map((share) => {
          const y = FLOOR - share * (FLOOR - TOP);
          return (
            <g key={share}>
              <line className="axis" x1={LEFT} x2={width} y1={y} y2={y} />
              <text x={LEFT - 6} y={y + 4} textAnchor="end">{shortNumber(most * share)}</text>
            </g>
          );
        })}
        <text x={LEFT} y={HEIGHT - 5}>{moment(frame.since, AXIS)}</text>
        <text x={width} y={HEIGHT - 5} textAnchor="end">{moment(frame.until, AXIS)}</text>
        {children(width)}
      </svg>
      <span className="sr-only">{unit}</span>
    </div>
  );
}

// Amounts beside each other, each as long as its share of the largest.
export function AmountBars({ rows, unit }: { rows: { name: string; amount: number }[]; unit: string }) {
  const most = Math.max(...rows.map((row) => row.amount), 0) || 1;
  return (
    <ul className="amounts">
      {rows.map((row) => (
        <li key={row.name}>
          <span className="words">{row.name}</span>
          <span className="amount">{t("plot.amount", { amount: row.amount, unit })}</span>
          <ShareBar share={row.amount / most} />
        </li>
      ))}
    </ul>
  );
}

export function ShareBar({ share, kind = "first" }: { share: number; kind?: string }) {
  return (
    <svg className="plot share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden>
      <rect className="rest" width={100} height={8} />
      <rect className={kind} width={100 * Math.min(1, Math.max(0, share))} height={8} />
    </svg>
  );
}

// A whole figure at or above the largest value that halves well: 1, 2, 5, 10, 20, …
export function niceTop(value: number): number {
  const size = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((times) => times * size >= value) ?? 10) * size;
}

