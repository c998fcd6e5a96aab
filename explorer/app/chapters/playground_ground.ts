import type { Engine } from "../../engine/client";
import { centers, onMap, onSphere, samples } from "../../engine/playground";
import type { Grid, Samples } from "../../engine/playground";
import type { Sheet } from "./playground_morph";
import { dataOf, ownGrid } from "./playground_state";
import type { State } from "./playground_state";

/** Cells along a side of the plane, points along a side of the sheet. */
export const cells = 96;
const sheetSide = 41;

/** The samples as the pictures need them. */
export interface Ground {
  samples: Samples;
  grid: Grid | null;
  /** Points of the grid, where it is a map of the sphere. */
  map: Float64Array | null;
  marks: ArrayLike<number>;
  sheet: Sheet | null;
  sheetPoints: Float64Array | null;
}

export async function groundOf(engine: Engine, state: State): Promise<Ground> {
  const found = await samples(engine, dataOf(state), cells);
  const sphere = state.data === "octants";
  const own = ownGrid(cells);
  const fits = found.x.every((value) => Math.abs(value) <= own.right);
  const grid = sphere
    ? { left: -Math.PI, right: Math.PI, bottom: -1, top: 1, columns: 2 * cells, rows: cells }
    : found.width !== 2
      ? null
      : state.data === "own" && fits
        ? own
        : (found.grid ?? null);
  const coarse = grid && { ...grid, columns: sheetSide * (sphere ? 2 : 1), rows: sheetSide };
  const places = coarse && (await centers(engine, coarse));
  return {
    samples: found,
    grid,
    map: sphere && grid ? await onSphere(engine, await centers(engine, grid)) : null,
    marks: sphere ? await onMap(engine, found.x) : found.x,
    sheet: coarse && { columns: coarse.columns, rows: coarse.rows, round: sphere },
    sheetPoints: places && (sphere ? await onSphere(engine, places) : places),
  };
}
