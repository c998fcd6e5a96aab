import { newest } from "../../engine/client";
import { image, steps } from "../../engine/geometry";
import type { Image, NormSpec } from "../../engine/geometry";
import { number } from "../../shared/format";
import { directionColors } from "../colors";
import type { Page } from "../chapter";
import type { State } from "../link";
import { PlaneFigure } from "../plane";
import type { Point } from "../plane";
import { across } from "./geometry_marks";

/** Values side by side, and the number of points shown for each. */
const values = [0.01, 0.1, 1];
const shownPoints = 300;
/** Distance of two pictures in units of what is shown. */
const apart = 2.5;

/** Rows of two directions of space. */
type Frame = [Float64Array, Float64Array];

const flat = across.map((direction) => Float64Array.from(direction.toArray())) as unknown as Frame;

const seenIn = (points: Float64Array, [u, v]: Frame): Point[] =>
  Array.from({ length: points.length / 3 }, (_, i) => {
    const along = (axis: Float64Array) => axis.reduce((sum, value, k) => sum + value * (points[3 * i + k] ?? 0), 0);
    return [along(u), along(v)];
  });

/** The two longest axes of the image; one without a second is drawn across any other direction. */
const longest = ({ axes }: Image): Frame => {
  const first = axes.slice(0, 3);
  return [first.length === 3 ? first : flat[0], axes.length >= 6 ? axes.slice(3, 6) : new Float64Array(3)];
};

interface Side {
  plane: PlaneFigure;
  /** For each value of eps, the points and the outline's half axes, in units of the longest. */
  drawn: { points: Point[]; halves: Point }[];
}

/** Draws the points behind three values of eps, after scaling and after stretching: the two pictures side by side. */
export function mountEps<S extends State & { kind: string }>(
  page: Page<S>,
  input: Float64Array,
  specOf: (state: S) => NormSpec,
): void {
  const points = input.subarray(0, 3 * shownPoints);
  const tints = directionColors(Float64Array.from(points));
  const side = (id: string, description: string, caption: string): Side => {
    const result: Side = {
      drawn: [],
      plane: new PlaneFigure({
        id,
        description,
        caption,
        x: [-1.2, 2 * apart + 1.2],
        y: [-1.2, 1.55],
        bare: true,
        table: () => ({
          columns: ["eps", "x", "y"],
          rows: result.drawn.flatMap((one, k) => one.points.map((point) => [values[k] ?? 0, ...point])),
        }),
      }),
    };
    page.keep(result.plane);
    page.slot(id).replaceWith(result.plane.element);
    result.plane.painted(() => result.drawn.forEach((one, k) => paint(result.plane, one, k, tints)));
    return result;
  };
  const scaled = side(
    "eps-scaled",
    "Scaled points seen along the all-ones direction, for three values of eps.",
    "2. Scale, seen along the all-ones direction: the larger ε, the farther from the circle. Points are those of the picture above.",
  );
  const stretched = side(
    "eps-stretched",
    "The same points after stretching, seen along the shortest direction, for three values of eps.",
    "3. Stretch, along the two longest axes of the image: the same, and the circle is an ellipse.",
  );
  const draw = newest(async (state: S) => {
    const spec = specOf(state);
    const found = await image(page.engine, spec);
    const all = await Promise.all(values.map((eps) => steps(page.engine, { ...spec, eps }, Float64Array.from(points))));
    const [most = 1, next = 0] = found.semiAxes;
    const empty = new Float64Array();
    scaled.drawn = all.map((stages) => ({
      points: shrunk(seenIn(stages[1] ?? empty, flat), found.radius),
      halves: [1, 1],
    }));
    stretched.drawn = all.map((stages) => ({
      points: shrunk(seenIn(stages[2] ?? empty, longest(found)), most),
      halves: [1, next / most],
    }));
    const radii = scaled.drawn.map(
      (one) => one.points.reduce((sum, [x, y]) => sum + Math.hypot(x, y), 0) / shownPoints,
    );
    scaled.plane.element.dataset["radii"] = radii.map((radius) => radius.toFixed(3)).join(" ");
    for (const { plane } of [scaled, stretched]) plane.changed();
  });
  let last = "";
  page.onChange((state) => {
    const now = JSON.stringify({ ...specOf(state), eps: 0 });
    if (now !== last) draw(state);
    last = now;
  });
}

const shrunk = (points: Point[], unit: number): Point[] => points.map(([x, y]) => [x / unit, y / unit]);

function paint(plane: PlaneFigure, { points, halves }: Side["drawn"][number], k: number, tints: Float32Array): void {
  const x = k * apart;
  const outline = Array.from({ length: 97 }, (_, i): Point => {
    const angle = (2 * Math.PI * i) / 96;
    return [x + halves[0] * Math.cos(angle), halves[1] * Math.sin(angle)];
  });
  plane.path(outline, { stroke: "var(--muted)" });
  for (const axis of [
    [1.12, 0],
    [0, 1.12 * halves[1]],
  ] as const)
    plane.line([x - axis[0], -axis[1]], [x + axis[0], axis[1]], { stroke: "var(--rule)", "stroke-dasharray": "4 3" });
  points.forEach((point, i) => {
    const tint = [...tints.subarray(3 * i, 3 * i + 3)].map((part) => Math.round(255 * part)).join(" ");
    plane.dot([x + point[0], point[1]], 2.6, { fill: `rgb(${tint})` });
  });
  plane.text([x, 1.25], `\u03b5 = ${number(values[k] ?? 0)}`, { "text-anchor": "middle" });
}
