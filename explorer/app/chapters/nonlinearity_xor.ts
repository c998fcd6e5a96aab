import { newest } from "../../engine/client";
import { classRatios, foldOnce } from "../../engine/nonlinearity";
import { table } from "../../shared/dom";
import { number } from "../../shared/format";
import type { Page } from "../chapter";
import { controls, slider } from "../controls";
import { ready } from "../figure";
import { numberInText } from "../numbers";
import { PlaneFigure } from "../plane";
import type { Point } from "../plane";
import { player } from "../player";
import { angles, places } from "./nonlinearity_state";
import type { State } from "./nonlinearity_state";

const labels = [0, 0, 1, 1];
const pair = (values: ArrayLike<number>, index: number): Point => [values[2 * index] ?? 0, values[2 * index + 1] ?? 0];

/** A disk for the first class, a ring for the second, a rimmed disk for the third. */
export function paintPoint(plane: PlaneFigure, at: Point, label: number, radius = 7, opacity = 1): void {
  const looks = [
    { fill: "var(--series-1)", stroke: "var(--paper)", "stroke-width": 1.5 },
    { fill: "var(--paper)", stroke: "var(--series-2)", "stroke-width": 3.5 },
    { fill: "var(--series-3)", stroke: "var(--ink)", "stroke-width": 2 },
  ];
  plane.dot(at, label === 1 ? radius - 1 : radius, { ...looks[label], opacity });
}

/** XOR, which no linear map separates, and one LayerNorm does. */
export function mountXor(page: Page<State>): void {
  const { store } = page;
  let circle = new Float64Array() as Float64Array;
  const directionOf = (state: State): Point => {
    const angle = (state.angle * Math.PI) / 180;
    return [Math.cos(angle), Math.sin(angle)];
  };
  const cells = () => ({
    columns: ["point", "class", "x", "y", "on the circle x", "on the circle y"],
    rows: labels.map((label, i) => [i, label, ...pair(store.get().corners, i), ...pair(circle, i)]),
  });
  const xor = new PlaneFigure({
    id: "xor",
    description: "Four points of two classes, the direction they are projected onto, and the fold.",
    x: [-2.4, 2.4],
    y: [-2, 2],
    table: cells,
  });
  const ring = new PlaneFigure({
    id: "circle",
    description: "The four points on their line, pulled onto the circle by the norm, and their heights.",
    x: [-2.4, 2.4],
    y: [-1.15, 1.45],
    table: cells,
  });
  page.slot("xor").append(xor.element);
  page.slot("circle").append(ring.element);
  for (const plane of [xor, ring]) page.keep(plane);

  xor.painted(() => {
    const state = store.get();
    const [ux, uy] = directionOf(state);
    const at = (along: number, across: number): Point => [along * ux - across * uy, along * uy + across * ux];
    xor.line(at(-4, 0), at(4, 0), { stroke: "var(--series-4)", "stroke-width": 1.5, opacity: 0.6 });
    xor.line(at(state.fold, -4), at(state.fold, 4), {
      stroke: "var(--ink)",
      "stroke-dasharray": "6 4",
      "stroke-width": 1.5,
    });
    xor.arrow([0, 0], at(1.6, 0), { stroke: "var(--series-4)" });
    labels.forEach((label, i) => {
      const [x, y] = pair(state.corners, i);
      const along = x * ux + y * uy;
      xor.line([x, y], at(along, 0), { "stroke-dasharray": "2 3" });
      paintPoint(xor, at(along, 0), label, 4);
    });
  });
  ring.painted(() => {
    const state = store.get();
    const [ux, uy] = directionOf(state);
    ring.circle([0, 0], 1, { stroke: "var(--muted)" });
    ring.line([-4, 1], [4, 1], { stroke: "var(--series-4)", "stroke-width": 1.5, opacity: 0.6 });
    labels.forEach((label, i) => {
      const [x, y] = pair(state.corners, i);
      const from: Point = [x * ux + y * uy - state.fold, 1];
      const to = pair(circle, i);
      ring.line([0, 0], from, { stroke: "var(--rule)" });
      ring.line(to, [0, to[1]], { "stroke-dasharray": "3 3" });
      paintPoint(ring, from, label, 5, 0.45);
      paintPoint(ring, to, label, 7);
    });
  });

  const draw = newest(async (state: State) => {
    const folded = await foldOnce(page.engine, state.corners, [...directionOf(state)], state.fold, 1);
    circle = folded.circle;
    const [before, linear, behind] = await Promise.all([
      classRatios(page.engine, state.corners, 2, labels),
      classRatios(page.engine, folded.linear, 3, labels),
      classRatios(page.engine, folded.neurons, 3, labels),
    ]);
    xor.handles([
      ...labels.map((label, i) => ({
        id: `corner ${i}`,
        label: `Point ${i}, class ${label}`,
        at: () => pair(store.get().corners, i),
        look: `class-${label}`,
        move: (to: Point) => {
          const corners = [...store.get().corners];
          corners.splice(2 * i, 2, ...to);
          store.drag({ corners });
        },
        done: () => store.commit(),
      })),
      {
        id: "direction",
        label: "Direction of the projection",
        at: () => directionOf(store.get()).map((value) => 1.6 * value) as Point,
        look: "direction",
        radius: 5,
        move: ([x, y]: Point) => store.drag({ angle: Math.round((Math.atan2(y, x) * 180) / Math.PI) }),
        done: () => store.commit(),
      },
    ]);
    for (const plane of [xor, ring]) {
      plane.changed();
      ready(plane.element);
    }
    const show = (value: number) => (Number.isNaN(value) ? "–" : value.toFixed(3));
    page.slot("ratios").replaceChildren(
      table(
        "How far apart the classes are: 0 is perfect, 1 not at all",
        ["values", "SSR", "LSSR, the best of any linear map"],
        [
          ["the points", show(before.ssr), show(before.lssr)],
          ["three neurons, linear", show(linear.ssr), show(linear.lssr)],
          ["three neurons behind LN", show(behind.ssr), show(behind.lssr)],
        ],
        [1, 2],
      ),
    );
    page.slot("xor-words").textContent =
      `No linear map of these points gets below ${show(before.lssr)}; behind one LN a linear map gets to ${show(behind.lssr)}.`;
    xor.element.dataset["angle"] = String(state.angle);
    xor.element.dataset["before"] = show(before.lssr);
    xor.element.dataset["behind"] = show(behind.lssr);
    page.say(`Least ratio ${number(before.lssr)} before, ${number(behind.lssr)} behind the norm`);
  });
  const angle = { ...angles, step: 1, show: (value: number) => `${value}°` };
  const fold = { ...places, step: 0.02 };
  numberInText(page, "angle, in the text", "angle", angle);
  numberInText(page, "fold, in the text", "fold", fold);
  page.slot("xor-controls").append(
    controls(
      "The layer",
      slider(page, "direction", "angle", angle),
      slider(page, "fold at c", "fold", fold),
      player(page, {
        read: (state) => state.angle,
        write: (value) => ({ angle: Math.round(value) }),
        from: 0,
        to: () => 45,
        pace: 90,
        label: "Turn the direction",
        seen: { element: xor.element, opens: true },
      }),
    ),
  );
  page.onChange(draw);
}
