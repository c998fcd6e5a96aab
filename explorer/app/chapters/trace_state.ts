import { mostTokens } from "../../engine/trace";
import { matching, whole } from "../link";
import type { Rules } from "../link";

export const defaults = {
  word: "understanding",
  /** Position of the chosen token; 0 is the end of the line before the word. */
  at: 6,
  /** For a model of the reader's own. */
  text: "",
};
export type State = typeof defaults;

/** The bundled model has 32 positions, of which the first is the end of the line before. */
export const longest = 31;

export const rules: Rules<State> = {
  word: matching(/^[a-z']{1,31}$/, "1 to 31 letters from a to z, or apostrophes"),
  at: whole({ min: 0, max: mostTokens }),
  text: matching(/^.{0,300}$/s, "up to 300 letters"),
};

/** A word that the bundled model can spell, of what was typed. */
export const cleaned = (typed: string): string =>
  typed
    .toLowerCase()
    .replace(/[^a-z']/g, "")
    .slice(0, longest);
