import type { TokenTrace } from "../../generated/token-trace";
import { measured, number, percent } from "../../shared/format";
import { mark } from "../svg";
import { box, told } from "./trace_marks";

/** The numbers of a vector, as bars from left to right. */
export interface Strip {
  label: string;
  value: string;
  row: ArrayLike<number>;
  /** The number that half the strip's height stands for. */
  scale: number;
  fill: string;
  /** A level that every number is to lose, and a row that is drawn faintly behind. */
  level?: number;
  behind?: ArrayLike<number>;
}

const lengthOf = (row: ArrayLike<number>): number => Math.sqrt(Array.from(row).reduce((sum, x) => sum + x * x, 0));
const largestOf = (row: ArrayLike<number>): number =>
  Array.from(row).reduce((most, x) => Math.max(most, Math.abs(x)), 1e-300);
const lengthText = (row: ArrayLike<number>): string => `length ${measured(lengthOf(row))}`;

/** What enters the stream. */
export const entering = (x: Float64Array): Strip => ({
  ...{ label: "x", value: lengthText(x), row: x, scale: largestOf(x) },
  fill: "var(--series-7)",
});

/** The stream before and behind what is added to it. */
export function adding(before: Float64Array, after: Float64Array): Strip[] {
  const added = before.map((x, i) => (after[i] ?? 0) - x);
  const scale = Math.max(...[before, added, after].map(largestOf));
  const strip = (label: string, row: Float64Array, fill: string): Strip => ({
    ...{ label, value: lengthText(row), row, scale, fill },
  });
  return [
    strip("before", before, "var(--series-7)"),
    strip("added", added, "var(--series-3)"),
    strip("sum", after, "var(--series-1)"),
  ];
}

type Norm = TokenTrace["norms"][number];

/** What a norm makes of a token: `row` gives x and what is left of it behind each of the four steps. */
export function normStrips(norm: Norm, token: Norm["tokens"][number], row: (step: number) => Float64Array): Strip[] {
  const x = row(0);
  const scaled = row(2);
  const output = row(4);
  const hasBias = row(3).some((value, i) => value !== output[i]);
  const first = largestOf(x);
  const second = Math.max(largestOf(scaled), largestOf(output));
  const mean = x.reduce((sum, one) => sum + one, 0) / x.length;
  const removed = token.ones_share === null ? null : Math.sqrt(token.ones_share);
  return [
    { ...entering(x), scale: first, ...(norm.centers ? { level: mean } : {}) },
    {
      ...{ label: norm.centers ? "− mean" : "nothing removed", value: norm.centers ? `${percent(removed)} of x` : "" },
      ...{ row: row(1), scale: first, fill: "var(--series-4)" },
    },
    { label: "÷ σ", value: `σ = ${measured(token.sigma)}`, row: scaled, scale: second, fill: "var(--series-1)" },
    {
      ...{ label: hasBias ? "gain + bias" : "× gain", value: lengthText(output), row: output, scale: second },
      ...{ fill: "var(--series-3)", behind: scaled },
    },
  ];
}

export function stripBars(strip: Strip, middle: number, half: number, left: number, right: number): SVGElement[] {
  const { row, scale, fill, level, behind } = strip;
  const step = (right - left) / row.length;
  const bars = (values: ArrayLike<number>, inset: number): string =>
    Array.from(values, (value, i) => {
      const tall = (-half * value) / scale;
      const wide = step * (1 - inset);
      return `M${(left + i * step + (step * inset) / 2).toFixed(2)} ${middle.toFixed(2)}v${tall.toFixed(2)}h${wide.toFixed(2)}v${(-tall).toFixed(2)}z`;
    }).join("");
  const parts: SVGElement[] = [mark("line", { x1: left, x2: right, y1: middle, y2: middle, stroke: "var(--rule)" })];
  if (behind !== undefined) parts.push(mark("path", { d: bars(behind, 0), fill: "var(--muted)", opacity: 0.25 }));
  parts.push(mark("path", { d: bars(row, step > 3 ? 0.25 : 0), fill }));
  if (level !== undefined) {
    const y = middle - (half * level) / scale;
    const band = box(left, Math.min(y, middle), right - left, Math.abs(y - middle), {
      ...{ fill: "var(--series-2)", stroke: "var(--series-2)", "stroke-width": 1 },
    });
    parts.push(told(band, `the mean, ${number(level)}, which all numbers lose`));
  }
  return parts;
}
