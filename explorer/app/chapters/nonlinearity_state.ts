import type { Mode } from "../../engine/nonlinearity";

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

export const modeOf = (state: State): Mode => (state.mode === "stable" ? "stable" : "paper");
