import { between, listOf, oneOf, seed, whole } from "../link";
import type { Rules } from "../link";

export const defaults = {
  dimension: 2,
  keys: [-2.1, 0.4, -0.9, 1.8, 1.1, 1.6, 2.3, 0.1, 1.2, -1.5, -1.1, -1.4, -0.3, 0.5, 0.9, -0.2, -0.8, -0.3],
  solid: [
    1.6, 0.2, -0.4, -1.2, 1.3, 0.3, 0.2, -1.6, 0.8, 0.5, 0.9, 1.7, -0.7, -0.6, -1.8, 0.1, 0.2, 0.1, -0.4, 0.3, -0.3,
    0.5, -0.3, 0.2, -1.7, -0.5, 0.6, 0.3, 1.4, -1.2,
  ],
  project: false,
  scale: false,
  chosen: 6,
  query: [1.2, 1.1],
  query3: [0.9, 1.2, 0.8],
  sharp: 3,
  seed: 1,
  runs: 20,
  tableSeed: 1,
  tableNorm: false,
  tableMean: 0,
  layerStep: 20000,
  layerKeys: "layer",
  taskWidth: 8,
  taskEqual: false,
  taskAt: 1500,
  taskSeed: 1,
  taskCurve: "accuracy",
  taskTurn: 30,
};
export type State = typeof defaults;

/** The most keys of a set. */
export const most = 60;
const entry = between({ min: -1000, max: 1000 });
const keys = (width: number) =>
  listOf(
    entry,
    (count) => count % width === 0 && count >= 2 * width && count <= most * width,
    `2 to ${most} keys of ${width} numbers`,
  );
const query = (width: number) => listOf(entry, (count) => count === width, `${width} numbers`);

export const sharpness = { min: 0, max: 20 };
export const runs = { min: 5, max: 100 };
/** Steps of the trained language models. */
export const layerSteps = { min: 0, max: 20000 };
/** Steps of training the majority task. */
export const taskSteps = { min: 0, max: 1500 };
export const rules: Rules<State> = {
  dimension: oneOf([2, 3]),
  keys: keys(2),
  solid: keys(3),
  chosen: whole({ min: 0, max: most - 1 }),
  query: query(2),
  query3: query(3),
  sharp: between(sharpness),
  seed,
  runs: whole(runs),
  tableSeed: seed,
  tableMean: oneOf([0, 1]),
  layerStep: oneOf(Array.from({ length: 21 }, (_, i) => 1000 * i)),
  layerKeys: oneOf(["layer", "head"]),
  taskWidth: oneOf([3, 8]),
  taskAt: whole(taskSteps),
  taskSeed: seed,
  taskCurve: oneOf(["accuracy", "loss"]),
  taskTurn: whole({ min: 0, max: 360 }),
};
