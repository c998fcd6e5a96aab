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

/** Half the length of the line along which the curvature is shown, and the number of its parts. */
const reach = 4;
const parts = 160;
/** Levels of its shade. */
const levels = 16;
const placeOf = (part: number): number => reach * ((2 * part) / parts - 1);

/** XOR, which no linear map separates, and one LayerNorm does. */
export function mountXor(page: Page<State>): void {
  const { store } = page;
  let circle = new Float64Array() as Float64Array;
  /** The norm's curvature along the line, and the largest there is. */
  let bend = new Float64Array() as Float64Array;
  let most = 1;
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
  const curve = new PlaneFigure({
    id: "bend",
    description: "The Hessian measure of the norm along the line, largest at the fold.",
    x: [-2.4, 2.4],
    y: [0, 1.1],
    xTitle: "p, the place on the line",
    yTitle: "Hessian measure",
    aspect: 0.6,
    table: () => ({
      columns: ["place on the line", "Hessian measure"],
      rows: [...bend].map((value, part) => [placeOf(part), value]),
    }),
  });
  page.slot("xor").append(xor.element);
  page.slot("circle").append(ring.element);
  page.slot("bend").append(curve.element);
  for (const plane of [xor, ring, curve]) page.keep(plane);

  xor.painted(() => {
    const state = store.get();
    const [ux, uy] = directionOf(state);
    const at = (along: number, across: number): Point => [along * ux - across * uy, along * uy + across * ux];
    // The darker, the more the norm bends there: strips on top of one another, one for each level that it exceeds.
    for (let level = 0.5; level < levels; ++level) {
      const inside = [...bend.keys()].filter((part) => bend[part]! >= (level * most) / levels);
      const [from, to] = [placeOf(inside.at(0) ?? 0), placeOf(inside.at(-1) ?? 0)];
      const strip = [at(from, -reach), at(to, -reach), at(to, reach), at(from, reach)];
      if (from < to) xor.path(strip, { fill: "var(--series-4)", stroke: "none", "fill-opacity": 0.4 / levels });
    }
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

  curve.painted(() => {
    const state = store.get();
    const [ux, uy] = directionOf(state);
    curve.ranges([-2.4, 2.4], [0, 1.15 * most]);
    const line = [...bend].map((value, part): Point => [placeOf(part), value]);
    curve.path(
      line.filter(([x]) => Math.abs(x) < 2.41),
      { stroke: "var(--series-4)", "stroke-width": 2.2 },
    );
    curve.line([state.fold, 0], [state.fold, 1.15 * most], { stroke: "var(--ink)", "stroke-dasharray": "6 4" });
    labels.forEach((label, i) => {
      const [x, y] = pair(state.corners, i);
      const along = x * ux + y * uy;
      // On the curve, between the two nearest of its points.
      const part = Math.min(parts - 1, Math.max(0, ((along / reach + 1) * parts) / 2));
      const [low = 0, high = 0] = bend.subarray(Math.floor(part), Math.floor(part) + 2);
      paintPoint(curve, [along, low + (part % 1) * (high - low)], label, 5);
    });
  });

  const draw = newest(async (state: State) => {
    const [ux, uy] = directionOf(state);
    const line = Array.from({ length: parts + 1 }, (_, part) => [placeOf(part) * ux, placeOf(part) * uy]).flat();
    const [along, top] = await Promise.all([
      foldOnce(page.engine, line, [ux, uy], state.fold, 1),
      foldOnce(page.engine, [state.fold * ux, state.fold * uy], [ux, uy], state.fold, 1),
    ]);
    [bend, most] = [Float64Array.from(along.curvature), top.curvature[0] ?? 1];
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
    for (const plane of [xor, ring, curve]) {
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
    curve.element.dataset["top"] = placeOf(bend.indexOf(Math.max(...bend))).toFixed(2);
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
