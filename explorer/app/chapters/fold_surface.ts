import { BufferAttribute, BufferGeometry, Color, DoubleSide, Group, Mesh, MeshLambertMaterial, Vector3 } from "three";
import { move, surface } from "../../engine/fold";
import type { Move } from "../../engine/fold";
import { color } from "../../shared/theme";
import type { Page } from "../chapter";
import { choice, controls } from "../controls";
import type { Point } from "../plane";
import { SpaceFigure } from "../scene";
import { Labels, rod, tube } from "../space_marks";
import { circle, epsOf, pair, paths, settled } from "./fold_state";
import type { State } from "./fold_state";

/** Half sides of the surface, and its cells along them. */
const reach: Point = [3.2, 1.6];
const surfaceCells: [number, number] = [96, 48];
/** Height of the floor, on which the path has its shadow. */
const floor = -1.15;

/** The floor's edges nearest to the eye and the height at a corner, each with its ticks and its name. */
function drawAxes(axes: Group, labels: Labels): void {
  const [x, y] = reach;
  const words: { text: string; at: Vector3; color: string }[] = [];
  const draw = (
    at: (value: number) => Vector3,
    ends: Point,
    ticks: number[],
    out: Vector3,
    name: string,
    where: Vector3,
  ) => {
    axes.add(rod(at(ends[0]), at(ends[1]), 0.012, color("--muted")));
    for (const value of ticks) {
      axes.add(rod(at(value), at(value).addScaledVector(out, 0.09), 0.012, color("--muted")));
      const text = String(value).replace("-", "\u2212");
      words.push({ text, at: at(value).addScaledVector(out, 0.3), color: color("--muted") });
    }
    words.push({ text: name, at: where, color: color("--ink") });
  };
  const [front, right, left] = [new Vector3(0, -1, 0), new Vector3(1, 0, 0), new Vector3(-1, 0, 0)];
  const alongX = (value: number) => new Vector3(value, -y, floor);
  draw(alongX, [-x, x], [-3, -2, -1, 0, 1, 2, 3], front, "x", new Vector3(0, -y - 0.72, floor));
  const alongY = (value: number) => new Vector3(x, value, floor);
  draw(alongY, [-y, y], [-1, 0, 1], right, "y", new Vector3(x + 0.72, 0, floor));
  const upward = (value: number) => new Vector3(-x, -y, value);
  draw(upward, [floor, 1], [-1, 0, 1], left, "height", new Vector3(0.6 - x, -y, 1.4));
  labels.show(words);
}

/** The surface in space, with the path that a move takes on it. */
export async function showSurface(page: Page<State>): Promise<void> {
  const [columns, rows] = surfaceCells;
  const places = new Float64Array(2 * (columns + 1) * (rows + 1));
  for (let row = 0; row <= rows; ++row) {
    for (let column = 0; column <= columns; ++column) {
      const at = 2 * (row * (columns + 1) + column);
      places[at] = reach[0] * ((2 * column) / columns - 1);
      places[at + 1] = reach[1] * ((2 * row) / rows - 1);
    }
  }
  const count = places.length / 2;
  let heights = new Float64Array();
  const figure = new SpaceFigure({
    id: "surface",
    description:
      "The surface x over the length of (x, y), a ridge and a valley that meet at the origin, and a path on it.",
    caption:
      "Height is the first coordinate of u. The line on it is the path that the input takes, with its shadow on the floor; its height is the activation curve.",
    eye: [3.1, -7.6, 4.6],
    wide: 1.5,
    table: () => ({
      columns: ["x", "y", "height"],
      rows: Array.from({ length: count }, (_, i) => [...pair(places, i), heights[i] ?? 0]),
    }),
  });
  page.keep(figure);
  page.slot("surface").replaceWith(figure.element);
  page.slot("surface-controls").append(controls("The path", choice(page, "Path", "path", paths)));
  const geometry = new BufferGeometry()
    .setAttribute("position", new BufferAttribute(new Float32Array(3 * count), 3))
    .setAttribute("color", new BufferAttribute(new Float32Array(3 * count), 3));
  const index: number[] = [];
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) {
      const at = row * (columns + 1) + column;
      index.push(at, at + 1, at + columns + 1, at + 1, at + columns + 2, at + columns + 1);
    }
  }
  geometry.setIndex(index);
  const sheet = new Mesh(
    geometry,
    new MeshLambertMaterial({ vertexColors: true, side: DoubleSide, transparent: true, opacity: 0.85 }),
  );
  sheet.frustumCulled = false;
  const axes = new Group();
  const labels = new Labels();
  page.keep(labels);
  /** The path, its shadow and the lines between. */
  const drawn = new Group();
  const all = new Group().add(sheet, axes, drawn, labels.group);
  // The middle of what is seen, floor included, comes to the middle of the picture.
  all.position.z = 0.45;
  figure.add(all);
  let paper = "";
  const full = circle(240);
  await settled(
    page,
    (state) =>
      String([state.eps, state.path, state.path === "stretch" ? state.stretch : state.shift, color("--paper")]),
    async (state) => {
      const line = new Float64Array(Array.from({ length: 241 }, (_, i) => [reach[0] * (i / 120 - 1), 0.5]).flat());
      const taken =
        state.path === "line"
          ? line
          : (
              await move(
                page.engine,
                state.path as Move,
                state.path === "stretch" ? state.stretch : state.shift,
                epsOf(state),
                full,
              )
            ).moved;
      const [over, along] = await Promise.all([
        surface(page.engine, epsOf(state), places),
        surface(page.engine, epsOf(state), taken),
      ]);
      heights = Float64Array.from(over);
      const [low, high, middle] = [
        new Color(color("--series-1")),
        new Color(color("--series-2")),
        new Color(color("--rule")),
      ];
      const position = geometry.getAttribute("position") as BufferAttribute;
      const tints = geometry.getAttribute("color") as BufferAttribute;
      const mixed = new Color();
      for (let i = 0; i < count; ++i) {
        const height = heights[i] ?? 0;
        position.setXYZ(i, ...pair(places, i), height);
        mixed.copy(middle).lerp(height < 0 ? low : high, Math.abs(height));
        tints.setXYZ(i, mixed.r, mixed.g, mixed.b);
      }
      position.needsUpdate = true;
      tints.needsUpdate = true;
      geometry.computeVertexNormals();
      const closed = state.path !== "line";
      const points = (height: (i: number) => number) =>
        Array.from(along, (_, i) => new Vector3(...pair(taken, i), height(i)));
      figure.drop([...drawn.children]);
      const onSheet = points((i) => along[i] ?? 0);
      const below = points(() => floor);
      drawn.add(tube(onSheet, 0.035, color("--ink"), closed), tube(below, 0.014, color("--muted"), closed));
      for (let i = 0; i < onSheet.length; i += 20) drawn.add(rod(below[i]!, onSheet[i]!, 0.006, color("--muted")));
      if (paper !== color("--paper")) {
        paper = color("--paper");
        figure.drop([...axes.children]);
        drawAxes(axes, labels);
      }
      figure.element.dataset["words"] = labels.words;
      figure.element.dataset["path"] = `${state.path} ${Math.min(...along).toFixed(4)}`;
      figure.changed();
    },
  );
}
