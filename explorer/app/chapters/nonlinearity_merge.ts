import { newest } from "../../engine/client";
import { foldedPlaces, mergePoints, randomLabels } from "../../engine/nonlinearity";
import type { Merged } from "../../engine/nonlinearity";
import { normals } from "../../engine/random";
import { button, el } from "../../shared/dom";
import { plural } from "../../shared/format";
import { theme } from "../../shared/theme";
import type { Page } from "../chapter";
import { choice, controls, slider } from "../controls";
import { ChartFigure } from "../figure";
import { player } from "../player";
import { PlaneFigure } from "../plane";
import type { Point, Range } from "../plane";
import { modeOf, mostPoints } from "./nonlinearity_state";
import type { State } from "./nonlinearity_state";
import { paintPoint } from "./nonlinearity_xor";

const rounded = (value: number): number => Number(value.toFixed(2));

/** The least and the most of `values`, with some room around. */
function around(values: ArrayLike<number>): Range {
  const all = Array.from(values);
  const [least, most] = [Math.min(...all), Math.max(...all)];
  const room = 0.08 * (most - least || 1);
  return [least - room, most + room];
}

/** Projection Merge on the reader's own points, fold by fold. */
export function mountMerge(page: Page<State>): void {
  const { store } = page;
  let merged: Merged | null = null;
  let shown: State = store.get();
  let curve: Point[] = [];
  let task = "";
  let curveOf = "";

  const layers = () => merged?.folds.length ?? 0;
  const layerOf = (state: State) => Math.max(0, Math.min(Math.floor(state.step), layers() - 1));
  const placesOf = (layer: number) => {
    const rows = shown.labels.length;
    return merged?.places.subarray(layer * rows, (layer + 1) * rows) ?? new Float64Array();
  };
  const cells = () => ({
    columns: ["layer", "point", "class", "before the fold", "behind it", "neuron 1", "neuron 2", "neuron 3"],
    rows: (merged?.folds ?? []).flatMap((_, layer) =>
      shown.labels.map((label, row) => [
        layer,
        row,
        label,
        placesOf(layer)[row] ?? 0,
        placesOf(layer + 1)[row] ?? 0,
        ...(merged?.neurons.subarray(
          3 * (layer * shown.labels.length + row),
          3 * (layer * shown.labels.length + row) + 3,
        ) ?? []),
      ]),
    ),
  });
  const add = ([x, y]: Point) => {
    const state = store.get();
    if (state.labels.length >= mostPoints) return;
    store.commit({ points: [...state.points, rounded(x), rounded(y)], labels: [...state.labels, state.colour] });
  };
  const points = new PlaneFigure({
    id: "points",
    description: "Points of up to three classes and the direction they are projected onto. Press to add one.",
    x: [-3, 3],
    y: [-2.2, 2.2],
    pressed: add,
    table: cells,
  });
  const fold = new PlaneFigure({
    id: "fold",
    description: "The curve of a layer's fold: each point's place before it, across, and behind it, upwards.",
    x: [0, 1],
    y: [0, 1],
    aspect: 0.74,
    xTitle: "place before the layer",
    yTitle: "place behind it",
    table: cells,
  });
  const neurons = new PlaneFigure({
    id: "neurons",
    description: "What the layer's three neurons give for each point.",
    caption: "The layer's three neurons, a column each.",
    x: [0.5, 3.5],
    y: [-1.8, 1.8],
    xTitle: "neuron",
    yTitle: "value",
    categories: (neuron) => (neuron >= 1 && neuron <= 3 ? String(neuron) : ""),
    aspect: 0.55,
    table: cells,
  });
  const runs = new ChartFigure("folds", cells, "Runs of one colour along the line, layer by layer.");
  for (const [slot, shownIn] of Object.entries({ points, fold, neurons, runs }))
    page.slot(slot).append(shownIn.element);
  for (const figure of [points, fold, neurons, runs]) page.keep(figure);

  points.painted(() => {
    const [x = 1, y = 0] = merged?.direction ?? [];
    const length = Math.hypot(x, y) || 1;
    const [ux, uy] = [x / length, y / length];
    points.line([-5 * ux, -5 * uy], [5 * ux, 5 * uy], { stroke: "var(--series-4)", "stroke-width": 1.5, opacity: 0.7 });
    shown.labels.forEach((label, row) => {
      const [px = 0, py = 0] = shown.points.slice(2 * row, 2 * row + 2);
      const along = px * ux + py * uy;
      points.line([px, py], [along * ux, along * uy], { stroke: "var(--rule)" });
      paintPoint(points, [along * ux, along * uy], label, 3.5);
    });
  });
  fold.painted(() => paintFold());
  const paintFold = () => {
    const layer = layerOf(shown);
    const [before, behind, what] = [placesOf(layer), placesOf(layer + 1), merged?.folds[layer]];
    if (what === undefined || before.length === 0) return;
    const [xs, ys] = [around(before), around(behind)];
    fold.ranges(xs, ys);
    fold.path(curve, { stroke: "var(--series-4)", "stroke-width": 2 });
    fold.line([what.midpoint, ys[0]], [what.midpoint, ys[1]], { "stroke-dasharray": "6 4" });
    const part = Math.min(1, Math.max(0, shown.step - layer));
    const [up, left] = [Math.min(1, 2 * part), Math.max(0, 2 * part - 1)];
    shown.labels.forEach((label, row) => {
      const [from, to] = [before[row] ?? 0, behind[row] ?? 0];
      const at: Point = [from + left * (xs[0] - from), ys[0] + up * (to - ys[0])];
      fold.line([from, ys[0]], [from, ys[0] + up * (to - ys[0])], { stroke: "var(--rule)" });
      if (left > 0) fold.line([from, to], at, { stroke: "var(--rule)" });
      if (row === what.first || row === what.second)
        fold.dot(at, 12, { fill: "none", stroke: "var(--ink)", "stroke-width": 1.5 });
      paintPoint(fold, at, label);
    });
  };
  neurons.painted(() => {
    const layer = layerOf(shown);
    const rows = shown.labels.length;
    shown.labels.forEach((label, row) => {
      for (let neuron = 0; neuron < 3 && merged !== null && layers() > 0; ++neuron) {
        // Side by side, so that equal values remain visible.
        const across = neuron + 1 + 0.7 * ((row + 0.5) / rows - 0.5);
        paintPoint(neurons, [across, merged.neurons[3 * (layer * rows + row) + neuron] ?? 0], label, 4.5);
      }
    });
  });

  const draw = newest(async (state: State) => {
    const now = JSON.stringify([state.points, state.labels, state.mode, state.seed]);
    if (now !== task) {
      merged = await mergePoints(page.engine, state.points, state.labels, modeOf(state), state.seed);
      task = now;
      curveOf = "";
    }
    shown = state;
    const layer = layerOf(state);
    const what = merged?.folds[layer];
    if (what !== undefined && curveOf !== `${task} ${layer}`) {
      curveOf = `${task} ${layer}`;
      const [least, most] = around(placesOf(layer));
      const across = Array.from({ length: 161 }, (_, i) => least + ((most - least) * i) / 160);
      const heights = await foldedPlaces(page.engine, modeOf(state), what, across);
      curve = across.map((x, i) => [x, heights[i] ?? 0]);
    }
    points.handles(
      state.labels.map((label, row) => ({
        id: `point ${row}`,
        label: `Point ${row}, class ${label}`,
        at: () => {
          const { points: now } = store.get();
          return [now[2 * row] ?? 0, now[2 * row + 1] ?? 0] as Point;
        },
        look: `class-${label}`,
        radius: 7,
        move: (to: Point) => {
          const all = [...store.get().points];
          all.splice(2 * row, 2, ...to.map(rounded));
          store.drag({ points: all });
        },
        done: () => store.commit(),
        remove: () => {
          const { points: all, labels } = store.get();
          if (labels.length <= 2) return;
          store.commit({
            points: all.filter((_, i) => Math.floor(i / 2) !== row),
            labels: labels.filter((_, i) => i !== row),
          });
        },
      })),
    );
    for (const plane of [points, fold, neurons]) plane.changed();
    tell(state);
    steps.max = String(Math.max(1, layers()));
    steps.value = String(Math.min(state.step, layers()));
    count.textContent = layers() === 0 ? "no layer" : `layer ${layer + 1} of ${layers()}`;
    steps.setAttribute("aria-valuetext", count.textContent);
    const chart = `${task} ${theme()}`;
    if (merged !== null && layers() > 0 && chart !== drawn) {
      drawn = chart;
      await runs.draw(merged.figure, "Runs of one colour left along the line, over the layers.");
    }
  });
  let drawn = "";

  const tell = (state: State) => {
    if (merged === null) return;
    const { correct, total } = merged;
    const right =
      correct === total
        ? `All ${total} points get their label`
        : `${correct} of ${total} points get their label: rounding or a tie has lost the others, and the stable folds would not`;
    page.slot("merge-words").textContent =
      layers() === 0
        ? `${right}: the line alone tells the classes apart.`
        : `${right}, by ${plural(layers(), "layer")} of three neurons; ${merged.folds[layerOf(state)]?.runs ?? 0} runs of one colour are left behind this one.`;
    Object.assign(points.element.dataset, { layers: layers(), correct, total });
    fold.element.dataset["layer"] = String(layerOf(state));
  };

  const steps = el("input", { type: "range", min: 0, max: 1, step: 0.01, "aria-label": "Layer" });
  const count = el("output", {});
  steps.addEventListener("input", () => store.show({ step: Number(steps.value) }));
  const play = player(page, {
    read: (state) => state.step,
    write: (step) => ({ step }),
    from: 0,
    to: layers,
    pace: 1800,
  });
  const move = (by: number) => store.show({ step: Math.min(layers(), Math.max(0, Math.round(store.get().step + by))) });
  page.slot("steps").append(
    controls(
      "Layers",
      play,
      button("Back", () => move(-1), { class: "action" }),
      button("Next", () => move(1), { class: "action" }),
      el("div", { class: "control slider wide" }, el("span", {}, "layer"), steps, count),
    ),
  );
  const draws = async (classes: number) => {
    const { labels, seed } = store.get();
    store.commit({
      labels: [...(await randomLabels(page.engine, labels.length, classes, seed + 1))],
      seed: seed + 1,
      step: 0,
    });
  };
  page.slot("merge-controls").append(
    controls(
      "The points",
      choice(page, "New points are", "colour", [
        [0, "disks"],
        [1, "rings"],
        [2, "rimmed disks"],
      ]),
      button(
        "Add one",
        () => void normals(page.engine, 2, store.get().labels.length + 100).then(([x = 0, y = 0]) => add([x, y])),
        { class: "action" },
      ),
      button("Random labels", () => void draws(2), { class: "action" }),
      button("Labels of three classes", () => void draws(3), { class: "action" }),
      choice(page, "Folds", "mode", [
        ["paper", "as published"],
        ["stable", "stable"],
      ]),
      slider(page, "projection", "seed", { min: 1, max: 50, step: 1 }),
    ),
  );
  page.onChange(draw);
}
