import { states, trace } from "../../engine/counting";
import type { Cell, States } from "../../engine/counting";
import type { Trace } from "../../generated/trace";
import type { Page } from "../chapter";
import { ready } from "../figure";
import { PlaneFigure, ticks } from "../plane";
import type { Point, Range } from "../plane";
import { languageOf } from "./counting_state";
import type { State } from "./counting_state";

/** Points of a line, at rest and while the slider moves. */
const points = { still: 400, moving: 60 };
const tints = ["--series-6", "--series-1", "--series-3", "--series-4"].map((name) => `var(${name})`);
const tintAt = (index: number): string => tints[index % tints.length]!;

export interface StatesFigure {
  element: HTMLElement;
  /** Asks the core for the states; the function it gives shows them, picture and words in one frame. */
  read(next: State): Promise<() => void>;
}

/** The states of one network, letter by letter, and what it expects. */
export function showStates(page: Page<State>, cell: Cell): StatesFigure {
  const name = cell.toUpperCase();
  const signal = cell === "lstm" ? "c" : "h";
  let seen: States | null = null;
  let state = page.store.get();
  /** Number of the letters read, with the start, and those whose values are drawn. */
  let steps = 1;
  let shown: number[] = [];
  let range: Range = [-1, 1];
  let says = "";
  const table = async () => tableOf(await trace(page.engine, cell, languageOf(state), state.n));
  const axis = { x: [0, 2 * state.n] as Range, xTitle: "letters read", wholeX: true };
  const units = new PlaneFigure({
    id: `trace-${cell}`,
    description: `The ten states of the ${name} letter by letter; the text below says which units count.`,
    ...axis,
    y: [-1, 1],
    yTitle: signal,
    aspect: 0.58,
    table,
  });
  const expected = new PlaneFigure({
    id: `expected-${cell}`,
    description: `The letters that the ${name} expects next, with their probabilities.`,
    ...axis,
    y: [0, 1],
    yTitle: "probability",
    aspect: 0.36,
    table: () => ({
      columns: ["letters read", ...(seen?.outputs ?? [])],
      rows: Array.from({ length: steps }, (_, step) => [
        step,
        ...(seen?.outputs ?? []).map((_, i) => seen?.probabilities[step * seen.outputs.length + i] ?? 0),
      ]),
    }),
  });
  for (const plane of [units, expected]) page.keep(plane);
  page.slot(cell).append(units.element, expected.element);

  /** One column of rows of `width` numbers. */
  const line = (rows: Float64Array, width: number, column: number): Point[] =>
    shown.map((step) => [step, rows[step * width + column] ?? 0]);
  const blocks = (plane: PlaneFigure, [least, most]: Range) => {
    for (let end = state.n; end < steps - 1; end += state.n)
      plane.line([end, least], [end, most], { "stroke-dasharray": "4 3" });
  };

  units.painted(() => {
    if (seen === null) return;
    page.slot(`${cell}-says`).textContent = says;
    const { values, units: width, counts } = seen;
    blocks(units, range);
    const counters = Array.from({ length: width }, (_, unit) => unit).filter((unit) => counts[unit]);
    for (let unit = 0; unit < width; ++unit) {
      if (!counters.includes(unit)) units.path(line(values, width, unit), { "stroke-width": 1.5, opacity: 0.55 });
    }
    counters.forEach((unit, i) => units.path(line(values, width, unit), { stroke: tintAt(i), "stroke-width": 2 }));
    const tops: Point[] = [];
    const near = ([x, y]: Point, [u, v]: Point) =>
      Math.abs(x - u) < 0.1 * steps && Math.abs(y - v) < 0.1 * (range[1] - range[0]);
    counters.forEach((unit, i) => {
      const top = line(values, width, unit).reduce((a, b) => (Math.abs(b[1]) > Math.abs(a[1]) ? b : a));
      // Names of counters that turn at one place stand below one another.
      const above = tops.filter((other) => near(other, top)).length;
      tops.push(top);
      const right = top[0] > 0.7 * steps;
      const shift: Point = [right ? -10 : 10, (top[1] > 0 ? 2 : 8) + 15 * above];
      units.text(top, `${signal}${unit} counts`, label(tintAt(i), right ? "end" : "start"), shift);
    });
  });
  expected.painted(() => {
    if (seen === null) return;
    const { probabilities, outputs } = seen;
    const width = outputs.length;
    blocks(expected, [0, 1]);
    outputs.forEach((_, i) => expected.path(line(probabilities, width, i), { stroke: tintAt(i), "stroke-width": 1.5 }));
    // Each name is at the middle of the letters before which it is the likeliest.
    outputs.forEach((output, i) => {
      const likely = shown.filter((step) => {
        const row = probabilities.subarray(step * width, (step + 1) * width);
        return row[i] === Math.max(...row);
      });
      const middle = likely[Math.floor(likely.length / 2)];
      if (middle === undefined) return;
      const last = middle > 0.9 * steps;
      expected.text([middle, 1], output, label(tintAt(i), last ? "end" : "middle"), [last ? -4 : 0, 15]);
    });
  });

  const show = (next: State, found: States, moving: boolean): void => {
    seen = found;
    state = next;
    steps = seen.values.length / seen.units;
    shown = shownSteps(steps, next.n, moving ? points.moving : points.still);
    range = cell === "gru" ? [-1, 1] : rangeOf(seen.values);
    units.ranges([0, steps - 1], range);
    expected.ranges([0, steps - 1], [0, 1]);
    for (const plane of [units, expected]) {
      plane.changed();
      ready(plane.element);
    }
    const counters = seen.counts.filter(Boolean).length;
    says =
      `n = ${next.n}: ${seen.accepted ? "accepts" : "refuses"} the member. ` +
      (counters === 0 ? "No unit counts." : `${counters} of its ten units ${counters === 1 ? "counts" : "count"}.`);
    units.element.dataset["n"] = String(next.n);
    units.element.dataset["counters"] = String(counters);
    page.say(`${cell}: ${says}`);
  };
  return {
    element: units.element,
    async read(next) {
      const moving = page.store.moving;
      const found = await states(page.engine, cell, languageOf(next), next.n);
      return () => show(next, found, moving);
    },
  };
}

/** Legible over lines. */
const label = (fill: string, anchor: string) => ({
  fill,
  "text-anchor": anchor,
  "font-weight": 600,
  stroke: "var(--paper)",
  "stroke-width": 4,
  "stroke-linejoin": "round",
  "paint-order": "stroke",
});

/** About `count` steps: every so many and the ends of blocks of `n` letters. */
function shownSteps(steps: number, n: number, count: number): number[] {
  const apart = Math.ceil(steps / count);
  return Array.from({ length: steps }, (_, step) => step).filter((step) => step % apart === 0 || step % n === 0);
}

/** A range with round ends around all values. */
function rangeOf(values: Float64Array): Range {
  const least = values.reduce((a, b) => Math.min(a, b));
  const most = values.reduce((a, b) => Math.max(a, b));
  const [first = 0, second = 1] = ticks([least, most], 8);
  const step = second - first;
  return [step * Math.floor(least / step), step * Math.ceil(most / step)];
}

function tableOf(data: Trace) {
  const columns = data.signals.flatMap(({ name, values }) => (values[0] ?? []).map((_, unit) => `${name}${unit}`));
  const rows = (data.signals[0]?.values ?? []).map((_, step) => [
    step === 0 ? "start" : (data.letters[step - 1] ?? ""),
    ...data.signals.flatMap(({ values }) => (values[step] ?? []).map((value) => value ?? "")),
  ]);
  return { columns: ["letter", ...columns], rows };
}
