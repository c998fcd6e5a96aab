import type { Engine } from "./client";

/** `count` independent standard normal numbers of that seed. */
export const normals = (engine: Engine, count: number, seed: number): Promise<Float64Array> =>
  engine.call("normals", count, seed);
