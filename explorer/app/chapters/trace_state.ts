import { mostTokens } from "../../engine/trace";
import { matching, whole } from "../link";
import type { Rules } from "../link";

export const defaults = {
  word: "understanding",
  /** Position of the chosen token; 0 is the end of the line before the word. */
  at: 6,
  /** Tokens that may come next, on show. */
  next: 10,
  /** For a model of the reader's own. */
  text: "",
};
export type State = typeof defaults;

export const nexts = { min: 1, max: 10 };
/** The bundled model has 32 positions, of which the first is the end of the line before. */
export const longest = 31;

export const rules: Rules<State> = {
  word: matching(/^[a-z']{1,31}$/, "1 to 31 letters from a to z, or apostrophes"),
  at: whole({ min: 0, max: mostTokens }),
  next: whole(nexts),
  text: matching(/^.{0,300}$/s, "up to 300 letters"),
};

/** A word that the bundled model can spell, of what was typed. */
export const cleaned = (typed: string): string =>
  typed
    .toLowerCase()
    .replace(/[^a-z']/g, "")
    .slice(0, longest);
