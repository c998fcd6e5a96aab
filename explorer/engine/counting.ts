import type { Hierarchy } from "../generated/hierarchy";
import type { Trace } from "../generated/trace";
import type { Engine } from "./client";

/** Cells of which a trained network is there. */
export type Cell = Extract<Trace["cell"], "lstm" | "gru">;
export type Language = Trace["language"];

/** Whether each member up to some n is accepted, and whether another number of last letters, to n + 10, is too. */
export interface Range {
  member: boolean[];
  another: boolean[];
  exactTo: number;
}

export interface Judgement {
  member: boolean;
  lstm: boolean;
  gru: boolean;
  constructed: boolean;
}

/** States of a network over one word; one row per letter, the first after the start symbol. */
export const trace = async (engine: Engine, cell: Cell, language: Language, n: number): Promise<Trace> =>
  JSON.parse(await engine.call<string>("countingTrace", cell, language, n)) as Trace;

/** What a picture shows of a trace: rows of the units' states and of the probabilities, the first after the start symbol. */
export interface States {
  units: number;
  values: Float64Array;
  outputs: string[];
  probabilities: Float64Array;
  /** Which units count, by a longer word if this one is too short to tell. */
  counts: boolean[];
  accepted: boolean;
}

export const states = (engine: Engine, cell: Cell, language: Language, n: number): Promise<States> =>
  engine.call("countingStates", cell, language, n);

export const range = (engine: Engine, cell: Cell, language: Language, most: number): Promise<Range> =>
  engine.call("countingRange", cell, language, most);

export const judge = (engine: Engine, language: Language, word: string): Promise<Judgement> =>
  engine.call("countingJudge", language, word);

export const hierarchy = async (engine: Engine): Promise<Hierarchy> =>
  JSON.parse(await engine.call<string>("countingHierarchy")) as Hierarchy;
