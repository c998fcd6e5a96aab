import type { Engine } from "./client";

export type Cell = "lstm" | "gru";
export type Language = "anbn" | "anbncn";

/** What a network does inside on one word; rows are letters, the first after the start symbol. */
export interface TraceData {
  n: number;
  letters: string;
  accepted: boolean;
  signals: { name: string; values: number[][] }[];
  drifts?: { unit: number; counts: boolean }[];
}

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

export interface EncoderClass {
  id: string;
  name: string;
  space: "constant" | "logarithmic" | "linear";
  rational: boolean;
  members: string;
  says: string;
  example: string;
  source: string;
  test: string;
}

export interface Standing {
  architecture: string;
  decoder: string;
  language: string;
  recognizes: boolean;
  source: string;
  test: string;
}

export interface Hierarchy {
  classes: EncoderClass[];
  standings: Standing[];
  orders: { more: string; less: string; because: string; source: string }[];
}

export async function trace(
  engine: Engine,
  cell: Cell,
  language: Language,
  n: number,
): Promise<{ figure: Record<string, unknown>; data: TraceData }> {
  const { figure, data } = await engine.call<{ figure: string; data: string }>("countingTrace", cell, language, n);
  return { figure: JSON.parse(figure) as Record<string, unknown>, data: JSON.parse(data) as TraceData };
}

export const range = (engine: Engine, cell: Cell, language: Language, most: number): Promise<Range> =>
  engine.call("countingRange", cell, language, most);

export const judge = (engine: Engine, language: Language, word: string): Promise<Judgement> =>
  engine.call("countingJudge", language, word);

export const hierarchy = async (engine: Engine): Promise<Hierarchy> =>
  JSON.parse(await engine.call<string>("countingHierarchy")) as Hierarchy;
