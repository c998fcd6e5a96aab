import type { Engine } from "./client";
import type { NormSpec } from "./geometry";

/** Separation of classes: within-class over total sum of squares, and its minimum over all linear maps. */
export interface Ratios {
  ssr: number;
  lssr: number;
  /** The direction of the projection with the lowest ratio. */
  direction: Float64Array;
}

export const classRatios = (
  engine: Engine,
  x: ArrayLike<number>,
  width: number,
  labels: ArrayLike<number>,
): Promise<Ratios> => engine.call("classRatios", Float64Array.from(x), width, Float64Array.from(labels));

export interface Folded {
  /** Three neurons a row, before the norm. */
  linear: Float64Array;
  /** Neurons after the norm. */
  neurons: Float64Array;
  /** The point of the unit circle that they represent. */
  circle: Float64Array;
  /** The norm's squared second derivatives, summed, at the neurons before it: one a row. */
  curvature: Float64Array;
}

/** One layer of three neurons and LN that folds the line along `direction` about `midpoint`. */
export const foldOnce = (
  engine: Engine,
  x: ArrayLike<number>,
  direction: number[],
  midpoint: number,
  radius: number,
): Promise<Folded> => engine.call("foldOnce", Float64Array.from(x), Float64Array.from(direction), midpoint, radius);

export type Mode = "paper" | "stable";

export interface Fold {
  /** The rows whose clusters are merged; null if the layer only separates clusters. */
  first: number | null;
  second: number | null;
  midpoint: number;
  radius: number;
  /** Number of runs of equal labels along the line after the layer. */
  runs: number;
}

/** Projection Merge of points of the plane. */
export interface Merged {
  folds: Fold[];
  /** (layers + 1) × rows: places on the line before each fold, and behind the last. */
  places: Float64Array;
  /** layers × rows × 3, and × 2. */
  neurons: Float64Array;
  circle: Float64Array;
  direction: Float64Array;
  correct: number;
  total: number;
  figure: Record<string, unknown>;
}

export async function mergePoints(
  engine: Engine,
  points: ArrayLike<number>,
  labels: ArrayLike<number>,
  mode: Mode,
  seed: number,
): Promise<Merged> {
  const found = await engine.call<Omit<Merged, "figure"> & { figure: string }>(
    "mergePoints",
    Float64Array.from(points),
    Float64Array.from(labels),
    mode,
    seed,
  );
  return { ...found, figure: JSON.parse(found.figure) as Record<string, unknown> };
}

/** The position of each of `places` after a fold. */
export const foldedPlaces = (
  engine: Engine,
  mode: Mode,
  fold: Pick<Fold, "midpoint" | "radius">,
  places: ArrayLike<number>,
): Promise<Float64Array> => engine.call("foldedPlaces", mode, fold.midpoint, fold.radius, Float64Array.from(places));

export const randomLabels = (engine: Engine, count: number, classes: number, seed: number): Promise<Float64Array> =>
  engine.call("randomLabels", count, classes, seed);

export interface GroupCurvature {
  groups: number;
  /** Curvature over that of one group: its mean and its least over the rows. */
  ratio: number;
  least: number;
  bound: number | null;
}

/** Effect of groups on a norm's curvature, at `rows` standard normal rows from that seed. */
export async function groupCurvature(
  engine: Engine,
  spec: NormSpec,
  rows: number,
  seed: number,
): Promise<{ groups: GroupCurvature[]; figure: Record<string, unknown> }> {
  const { groups, figure } = await engine.call<{ groups: GroupCurvature[]; figure: string }>(
    "groupCurvature",
    spec,
    rows,
    seed,
  );
  return { groups, figure: JSON.parse(figure) as Record<string, unknown> };
}
