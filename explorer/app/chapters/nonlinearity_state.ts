import type { Mode } from "../../engine/nonlinearity";
import { between, listOf, oneOf, seed, whole } from "../link";
import type { Rules } from "../link";

export const defaults = {
  corners: [-1, -1, 1, 1, -1, 1, 1, -1],
  angle: 45,
  fold: 0,
  points: [
    -2.1, 0.9, -1.4, -1.2, -0.9, 1.6, -0.2, 0.1, 0.4, -1.6, 0.9, 1.1, 1.5, -0.4, 2.2, 1.4, 1.9, -1.5, -1.8, -0.1,
  ],
  labels: [0, 1, 1, 0, 0, 1, 0, 1, 1, 0],
  colour: 0,
  mode: "paper",
  step: 0.35,
  seed: 1,
  kind: "layer",
  width: 96,
  rows: 200,
  rowSeed: 1,
};
export type State = typeof defaults;

export const mostPoints = 40;
export const angles = { min: -180, max: 180 };
export const places = { min: -2, max: 2 };
export const widths = [24, 48, 96, 192, 384, 768];
export const rowCounts = { min: 10, max: 1000 };
const coordinate = between({ min: -1000, max: 1000 });
const colour = oneOf([0, 1, 2]);

export const rules: Rules<State> = {
  corners: listOf(coordinate, (count) => count === 8, "four points of two numbers"),
  angle: between(angles),
  fold: between(places),
  points: listOf(
    coordinate,
    (count) => count % 2 === 0 && count >= 4 && count <= 2 * mostPoints,
    `2 to ${mostPoints} points of two numbers`,
  ),
  labels: listOf<State>(colour, (count, { points }) => count === points.length / 2, "a class for every point"),
  colour,
  mode: oneOf(["paper", "stable"]),
  step: between({ min: 0, max: 1000 }),
  seed,
  kind: oneOf(["layer", "rms"]),
  width: oneOf(widths),
  rows: whole(rowCounts),
  rowSeed: seed,
};

export const modeOf = (state: State): Mode => (state.mode === "stable" ? "stable" : "paper");
