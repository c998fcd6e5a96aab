import { mostTokens } from "../../engine/trace";
import { matching, whole } from "../link";
import type { Rules } from "../link";

/** The model that is open until the reader brings another one: a folder of models/, as the site has it. */
export const bundled = {
  folder: "kjv_gpt",
  files: ["config.json", "model.safetensors", "tokenizer.json"],
  /** For a picture of the right size before there is one: layers, and heads of each. */
  layers: 4,
  heads: 4,
  /** Tokens of the first text. */
  tokens: 16,
};

export const defaults = {
  text: "And God said, Let there be light: and there was software.",
  /** Position of the chosen token, from 0: one that the model has never met, of which the first norm removes most. */
  at: 14,
  /** Step of the forward pass that is open; 0 is the embedding, 1 the first norm. */
  step: 1,
  /** Tokens that may come next, on show. */
  next: 10,
  /** The component that is removed at the last step, as the core names it; empty if there is none. */
  without: "",
};
export type State = typeof defaults;

/** The step up to which the picture plays by itself: the first layer. */
export const firstLayer = 4;

export const nexts = { min: 1, max: 10 };
/** More steps than a model has that a page runs. */
export const mostSteps = 400;

export const rules: Rules<State> = {
  text: matching(/^.{1,300}$/s, "1 to 300 letters"),
  at: whole({ min: 0, max: mostTokens }),
  step: whole({ min: 0, max: mostSteps }),
  next: whole(nexts),
  without: matching(/^([a-z_]+|\d+\.[\d_a-z]+)?$/, "a component, such as 2.1 for head 1 of layer 2"),
};
