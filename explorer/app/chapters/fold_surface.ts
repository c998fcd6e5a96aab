import {
  BufferAttribute,
  BufferGeometry,
  Color,
  DoubleSide,
  Line,
  LineBasicMaterial,
  Mesh,
  MeshLambertMaterial,
} from "three";
import { move, surface } from "../../engine/fold";
import type { Move } from "../../engine/fold";
import { color } from "../../shared/theme";
import type { Page } from "../chapter";
import { choice, controls } from "../controls";
import type { Point } from "../plane";
import { SpaceFigure } from "../scene";
import { circle, epsOf, pair, paths, settled } from "./fold_state";
import type { State } from "./fold_state";

/** Half sides of the surface, and its cells along them. */
const reach: Point = [3.2, 1.6];
const surfaceCells: [number, number] = [96, 48];

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
      "Height is the first coordinate of u. The line on it is the path that the input takes; its height is the activation curve.",
    eye: [3.0, -6.5, 4.8],
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
  const path = new Line(new BufferGeometry(), new LineBasicMaterial());
  const shadow = new Line(new BufferGeometry(), new LineBasicMaterial());
  for (const object of [sheet, path, shadow]) object.frustumCulled = false;
  figure.add(sheet, path, shadow);
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
        Float32Array.from(
          Array.from({ length: along.length + (closed ? 1 : 0) }, (_, i) => i % along.length).flatMap((i) => [
            ...pair(taken, i),
            height(i),
          ]),
        );
      path.geometry.dispose();
      path.geometry = new BufferGeometry().setAttribute(
        "position",
        new BufferAttribute(
          points((i) => (along[i] ?? 0) + 0.015),
          3,
        ),
      );
      shadow.geometry.dispose();
      shadow.geometry = new BufferGeometry().setAttribute(
        "position",
        new BufferAttribute(
          points(() => -1.15),
          3,
        ),
      );
      path.material.color = new Color(color("--ink"));
      shadow.material.color = new Color(color("--muted"));
      figure.element.dataset["path"] = `${state.path} ${Math.min(...along).toFixed(4)}`;
      figure.changed();
    },
  );
}
