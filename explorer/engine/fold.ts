import type { Engine } from "./client";

export type Move = "stretch" | "shift";

/** Points of the plane after a move, and their images under u; two numbers per point. */
export interface Moved {
  moved: Float64Array;
  landed: Float64Array;
}

export const move = (engine: Engine, name: Move, t: number, eps: number, points: Float64Array): Promise<Moved> =>
  engine.call("foldMove", name, t, eps, points);

/** The first coordinate after a move, for first coordinates of points of the circle. */
export const curve = (engine: Engine, name: Move, t: number, eps: number, xs: Float64Array): Promise<Float64Array> =>
  engine.call("foldCurve", name, t, eps, xs);

/** Heights of the activation surface over points. */
export const surface = (engine: Engine, eps: number, points: Float64Array): Promise<Float64Array> =>
  engine.call("foldSurface", eps, points);

/** Share of the circle that a stretch moves beyond `level`. */
export const share = (engine: Engine, t: number, level: number): Promise<number> => engine.call("foldShare", t, level);

/** Turns around the origin, the largest speed and the divot's depth of a shift; null where there is none. */
export const facts = (
  engine: Engine,
  t: number,
): Promise<{ winding: number | null; speed: number | null; minimum: number | null }> => engine.call("foldFacts", t);
