import type { Language } from "../../engine/counting";

export const defaults = { language: "anbn", n: 60, word: "aaabbb", field: "counter-aware" };
export type State = typeof defaults;

export const languages: Record<Language, string> = { anbn: "aⁿbⁿ", anbncn: "aⁿbⁿcⁿ" };

export const languageOf = ({ language }: State): Language => (language === "anbncn" ? "anbncn" : "anbn");

/** A text of the core with its powers as this page writes them: aⁿbⁿ for a^n b^n, 2ⁿ for 2^n. */
export const powers = (text: string): string =>
  text
    .replace(/(?<=\^n) (?=[a-c]\^n)/g, "")
    .replaceAll("^n", "ⁿ")
    .replaceAll("^k", "ᵏ");
