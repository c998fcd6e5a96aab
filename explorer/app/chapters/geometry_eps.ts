import { newest } from "../../engine/client";
import { image, steps } from "../../engine/geometry";
import type { Image, NormSpec } from "../../engine/geometry";
import { directionColors } from "../colors";
import type { Page } from "../chapter";
import { controls, slider } from "../controls";
import type { KeyOf } from "../controls";
import type { State } from "../link";
import { PlaneFigure } from "../plane";
import type { Point } from "../plane";
import { across } from "./geometry_marks";

/** Values side by side, and the number of points shown for each. */
const values = [
  { eps: 1e-1, name: "ε\u00a0=\u00a010⁻¹" },
  { eps: 1e-3, name: "ε\u00a0=\u00a010⁻³" },
  { eps: 1e-5, name: "ε\u00a0=\u00a010⁻⁵" },
];
export const shownPoints = 300;
/** Distance of two pictures in units of what is shown, and the width in pixels below which they stand one above the other. */
const apart = 2.5;
const narrow = 560;

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

/** Half the height of the pictures' outlines. */
const heightOf = ({ drawn }: Side): number =>
  drawn.length === 0 ? 1 : Math.max(...drawn.map(({ halves }) => halves[1]));

/** The place of a picture among the three, as high as their outlines need. */
const centerOf = (side: Side, k: number): Point =>
  side.plane.element.clientWidth < narrow ? [0, -k * (2 * heightOf(side) + apart - 2)] : [k * apart, 0];

/**
 * Draws the points behind three values of eps, after scaling and after stretching. A point that is pressed in one of the
 * six pictures is ringed in all.
 */
export function mountEps<S extends State & { kind: string; point: number }>(
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
        y: [-1.2, 1.45],
        bare: true,
        pressed: (at) => {
          const found = nearest(result, at);
          if (found !== null) page.store.commit({ point: found } as Partial<S>);
        },
        table: () => ({
          columns: ["eps", "point", "x", "y"],
          rows: result.drawn.flatMap((one, k) => one.points.map((point, i) => [values[k]!.eps, i, ...point])),
        }),
      }),
    };
    page.keep(result.plane);
    page.slot(id).replaceWith(result.plane.element);
    result.plane.painted(() => {
      const height = heightOf(result);
      const [x, y] = centerOf(result, 2);
      if (x === 0) result.plane.ranges([-1.25, 1.25], [y - height - 0.2, height + 0.45]);
      else result.plane.ranges([-1.2, x + 1.2], [-height - 0.2, height + 0.45]);
      const { point } = page.store.get();
      result.drawn.forEach((one, k) => paint(result, one, k, tints, point));
    });
    return result;
  };
  const scaled = side(
    "eps-scaled",
    "Scaled points seen along the all-ones direction, for three values of eps.",
    "2. Scale, seen along the all-ones direction: the larger ε, the farther from the circle. Points are those of the picture above; press one to find it in all six pictures.",
  );
  const stretched = side(
    "eps-stretched",
    "The same points after stretching, seen along the shortest direction, for three values of eps.",
    "3. Stretch, along the two longest axes of the image: the same, and the circle is an ellipse.",
  );
  page
    .slot("eps-controls")
    .append(
      controls(
        "The ringed point",
        slider(page, "ringed point", "point" as KeyOf<S, number>, { min: 0, max: shownPoints - 1, step: 1 }),
      ),
    );
  const tell = ({ point }: S) => {
    const parts = scaled.drawn.map((one) => Math.hypot(...(one.points[point] ?? [0, 0])));
    const { dataset } = scaled.plane.element;
    dataset["point"] = String(point);
    dataset["parts"] = parts.map((part) => part.toFixed(4)).join(" ");
    if (parts.length === values.length)
      page.slot("eps-words").textContent =
        `The ringed point comes to ${parts.map((part, k) => `${(100 * part).toPrecision(4)}\u00a0% of the radius with ${values[k]!.name}`).join(", ")}.`;
    for (const { plane } of [scaled, stretched]) plane.changed();
  };
  const draw = newest(async (state: S) => {
    const spec = specOf(state);
    const found = await image(page.engine, spec);
    const all = await Promise.all(
      values.map(({ eps }) => steps(page.engine, { ...spec, eps }, Float64Array.from(points))),
    );
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
    scaled.plane.element.dataset["radii"] = radii.map((radius) => radius.toFixed(5)).join(" ");
    tell(page.store.get());
  });
  let last = "";
  page.onChange((state) => {
    const now = JSON.stringify({ ...specOf(state), eps: 0 });
    if (now !== last) draw(state);
    else tell(state);
    last = now;
  });
}

const shrunk = (points: Point[], unit: number): Point[] => points.map(([x, y]) => [x / unit, y / unit]);

/** The point nearest to a place in one of the three pictures, unless all are far. */
function nearest(side: Side, at: Point): number | null {
  let [found, least]: [number | null, number] = [null, 0.15];
  side.drawn.forEach((one, k) => {
    const [x, y] = centerOf(side, k);
    one.points.forEach((point, i) => {
      const distance = Math.hypot(x + point[0] - at[0], y + point[1] - at[1]);
      if (distance < least) [found, least] = [i, distance];
    });
  });
  return found;
}

function paint(
  side: Side,
  { points, halves }: Side["drawn"][number],
  k: number,
  tints: Float32Array,
  ringed: number,
): void {
  const { plane } = side;
  const [x, y] = centerOf(side, k);
  const outline = Array.from({ length: 97 }, (_, i): Point => {
    const angle = (2 * Math.PI * i) / 96;
    return [x + halves[0] * Math.cos(angle), y + halves[1] * Math.sin(angle)];
  });
  plane.path(outline, { stroke: "var(--muted)" });
  for (const axis of [
    [1.12, 0],
    [0, 1.12 * halves[1]],
  ] as const)
    plane.line([x - axis[0], y - axis[1]], [x + axis[0], y + axis[1]], {
      stroke: "var(--rule)",
      "stroke-dasharray": "4 3",
    });
  points.forEach((point, i) => {
    const tint = [...tints.subarray(3 * i, 3 * i + 3)].map((part) => Math.round(255 * part)).join(" ");
    plane.dot([x + point[0], y + point[1]], 3.2, { fill: `rgb(${tint})` });
  });
  const [u, v] = points[ringed] ?? [0, 0];
  plane.line([x, y], [x + u, y + v], { stroke: "var(--ink)" });
  plane.dot([x + u, y + v], 7, { fill: "none", stroke: "var(--ink)", "stroke-width": 2 });
  plane.text([x, y + heightOf(side) + 0.24], values[k]!.name, { "text-anchor": "middle", "font-size": 14 });
}
