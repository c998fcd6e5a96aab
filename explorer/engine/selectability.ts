import type { Select } from "../generated/select";
import type { Engine } from "./client";

type Known = Select["verdicts"][number];

/** The answer for a key, and its proof. */
export interface Verdict {
  answer: Known["answer"];
  proof: Known["proof"];
  /** Selectable: lower bound of the margin of its query, scaled to length one. */
  margin: number;
  /** Not selectable: upper bound of the distance of the combination of others from it. */
  residual: number;
  query: Float64Array;
  others: Int32Array;
  shares: Float64Array;
  /** Whether the proof was checked from the keys alone. */
  verified: boolean;
}

export interface Selection {
  /** The keys after the steps. */
  keys: Float64Array;
  verdicts: Verdict[];
  /** Each face of their hull as the keys around it. */
  faces: Int32Array[];
}

/** Decides which keys of `width` numbers a query can select, after the chosen steps of LayerNorm. */
export const selectKeys = (
  engine: Engine,
  keys: ArrayLike<number>,
  width: number,
  steps: { project: boolean; scale: boolean },
): Promise<Selection> => engine.call("selectKeys", Float64Array.from(keys), width, steps.project, steps.scale);

/** Attention weights of the query: softmax of its products with the keys. */
export const attentionWeights = (
  engine: Engine,
  keys: ArrayLike<number>,
  width: number,
  query: ArrayLike<number>,
): Promise<Float64Array> => engine.call("attentionWeights", Float64Array.from(keys), width, Float64Array.from(query));

/** The weights as bars; their data set is "weights". */
export const attentionFigure = async (
  engine: Engine,
  keys: ArrayLike<number>,
  width: number,
  query: ArrayLike<number>,
): Promise<Record<string, unknown>> =>
  JSON.parse(
    await engine.call<string>("attentionFigure", Float64Array.from(keys), width, Float64Array.from(query)),
  ) as Record<string, unknown>;

export interface RandomTable {
  runs: number;
  seed: number;
  /** Whether the keys go through LayerNorm. */
  norm: boolean;
}

/** The least and most keys of a set in the table; widths are 3 to 15. */
export const tableCounts = [3, 60] as const;

/** Cells (width, count, share of sets that lose a key, mean share of keys lost) of sets of `count` keys. */
export const randomTableRow = (engine: Engine, table: RandomTable, count: number): Promise<Float64Array> =>
  engine.call("randomTableRow", table, count);

/** The cells so far as a heat map. */
export const randomTableFigure = async (
  engine: Engine,
  table: RandomTable,
  cells: number[],
  mean: boolean,
  title: string,
): Promise<Record<string, unknown>> =>
  JSON.parse(await engine.call<string>("randomTableFigure", table, Float64Array.from(cells), mean, title)) as Record<
    string,
    unknown
  >;
