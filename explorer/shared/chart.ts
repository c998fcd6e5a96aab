/** A number that may not be known. */
export type Maybe = number | null;

/** A chart the core made: a question, its answer in words, and the Vega-Lite specification. */
export interface Chart {
  id: string;
  question: string;
  answer: string;
  description: string;
  spec: Record<string, unknown>;
}
