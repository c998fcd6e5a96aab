import { number, percent } from "../../shared/format";
import type { Page } from "../chapter";
import { choice, controls, slider } from "../controls";
import { PlaneFigure } from "../plane";
import type { Point } from "../plane";
import { player, whenSeen } from "../player";
import { layerSteps } from "./selectability_state";
import type { State } from "./selectability_state";

const layers = 4;

/** A training of the lab: the measures of its steps. */
interface Run {
  scales: boolean;
  metrics: [step: number, values: Record<string, number>][];
}

/** The runs among the lines of docs/results/runs. */
export const runsIn = (lines: string): Run[] =>
  lines
    .split("\n")
    .filter((line) => line.startsWith('{"run"'))
    .map((line) => {
      const { run } = JSON.parse(line) as { run: { configuration: { scales: boolean }; metrics: Run["metrics"] } };
      return { scales: run.configuration.scales, metrics: run.metrics };
    });

/** Shares of keys that no query selects at a step: a bar a layer, with a number for each run. */
interface Bars {
  name: string;
  metric: "lost" | "lost_before" | "lost_in_head";
  scales: boolean;
  /** The paper's percentages by layer, tables 1 and 2. */
  paper: number[];
  color: string;
}
const series: Bars[] = [
  {
    ...{ name: "projection alone", metric: "lost", scales: false, color: "var(--series-2)" },
    paper: [51, 32.2, 34.7, 36.8],
  },
  {
    ...{ name: "before LayerNorm", metric: "lost_before", scales: true, color: "var(--series-4)" },
    paper: [44.8, 28.5, 22.3, 26.1],
  },
  { name: "behind LayerNorm", metric: "lost", scales: true, color: "var(--series-1)", paper: [0, 0, 0, 0] },
];
const ofHeads: Bars[] = [
  { name: "projection alone, a head", metric: "lost_in_head", scales: false, color: "var(--series-2)", paper: [] },
  { name: "behind LayerNorm, a head", metric: "lost_in_head", scales: true, color: "var(--series-1)", paper: [] },
];

/** The shares of a layer at a step, one a run. */
export const sharesAt = (runs: Run[], bars: Pick<Bars, "metric" | "scales">, layer: number, step: number): number[] =>
  runs
    .filter(({ scales }) => scales === bars.scales)
    .map(({ metrics }) => metrics.find(([at]) => at === step)?.[1][`${bars.metric}_${layer}`] ?? NaN);

export const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The keys that small language models lose, layer by layer, over their training. */
export function mountLayers(page: Page<State>): void {
  let runs: Run[] = [];
  let state = page.store.get();
  const chosen = () => (state.layerKeys === "head" ? ofHeads : series);
  const plane = new PlaneFigure({
    id: "lost-by-layer",
    description: "The share of keys that no query selects in each of four layers; the text below has the numbers.",
    x: [0.4, layers + 0.6],
    y: [0, 0.6],
    xTitle: "layer",
    yTitle: "share of keys lost",
    aspect: 0.6,
    categories: (layer) => (layer >= 1 && layer <= layers ? String(layer) : ""),
    table: () => ({
      columns: ["keys", "layer", "step", "run", "share"],
      rows: chosen().flatMap((bars) =>
        Array.from({ length: layers }, (_, i) =>
          sharesAt(runs, bars, i + 1, state.layerStep).map((share, run) => [
            bars.name,
            i + 1,
            state.layerStep,
            run + 1,
            share,
          ]),
        ).flat(),
      ),
    }),
  });
  page.keep(plane);
  page.slot("layers").append(plane.element);
  plane.painted(() => {
    const all = chosen();
    const wide = 0.8 / all.length;
    plane.ranges([0.4, layers + 0.6], [0, all === ofHeads ? 1.35 : 0.79]);
    // What is what, above the bars, one below another.
    const [x, y] = [plane.leftmost(), all === ofHeads ? 1.3 : 0.76];
    all.forEach((bars, k) => {
      for (let layer = 1; layer <= layers; ++layer) {
        const shares = sharesAt(runs, bars, layer, state.layerStep);
        if (shares.length === 0) return;
        const left = layer - 0.4 + k * wide;
        const [right, middle, top] = [left + 0.88 * wide, left + 0.44 * wide, mean(shares)];
        const corners: Point[] = [
          [left, 0],
          [left, top],
          [right, top],
          [right, 0],
        ];
        plane.path(corners, { fill: bars.color, stroke: bars.color, "fill-opacity": 0.8 });
        shares.forEach((share, run) =>
          plane.dot([middle + 0.12 * wide * (run - 1), share], 2.2, { fill: "var(--ink)" }),
        );
        const paper = bars.paper[layer - 1];
        if (paper !== undefined && paper > 0)
          plane.dot([middle, paper / 100], 5, { fill: "none", stroke: "var(--ink)", "stroke-width": 1.5 });
        if (top < 0.002) plane.text([middle, 0], "0", { "text-anchor": "middle" }, [0, -6]);
      }
      plane.text([x, y], "■", { fill: bars.color }, [8, 4 + 16 * k]);
      plane.text([x, y], bars.name, {}, [22, 4 + 16 * k]);
    });
    if (runs.length === 0) return;
    plane.text([x, y], "• one training", {}, [190, 4]);
    if (all !== ofHeads) plane.text([x, y], "○ in the paper", {}, [190, 20]);
  });
  page.slot("layers-controls").append(
    controls(
      "Keys by layer",
      slider(page, "steps", "layerStep", { ...layerSteps, step: 1000 }),
      player(page, {
        read: (now) => now.layerStep / 1000,
        write: (value) => ({ layerStep: 1000 * Math.round(value) }),
        from: 0,
        to: () => layerSteps.max / 1000,
        pace: 250,
      }),
      choice(page, "Queries of", "layerKeys", [
        ["layer", "the whole width, eight"],
        ["head", "a head, two numbers"],
      ]),
    ),
  );
  const tell = () => {
    if (runs.length === 0) return;
    const words = chosen().map((bars) => {
      const shares = Array.from({ length: layers }, (_, i) => mean(sharesAt(runs, bars, i + 1, state.layerStep)));
      plane.element.dataset[bars.scales ? `${bars.metric}Scaled` : bars.metric] = shares
        .map((share) => share.toFixed(3))
        .join(" ");
      return `${bars.name} ${shares.map((share) => (share === 0 ? "0 %" : percent(share))).join(", ")}`;
    });
    page.slot("layers-words").textContent =
      `After ${number(state.layerStep)} steps, in layers 1 to ${layers}: ${words.join("; ")}. Means of three trainings, the small dots.`;
    plane.changed();
  };
  page.onChange((next) => {
    state = next;
    tell();
  });
  const unwatch = whenSeen(plane.element, () => {
    void import("../../../docs/results/runs/brody-language-model.jsonl").then(({ default: lines }) => {
      runs = runsIn(lines);
      tell();
    });
  });
  page.onLeave(unwatch);
}
