import type { Engine } from "../engine/client";
import type { Rules, State } from "./link";
import type { Source } from "./sources";
import type { Store } from "./store";

/** A preset state of a chapter, with a claim to check in it. */
export interface Preset<S extends State> {
  name: string;
  claim: string;
  state: Partial<S>;
}

/** The command, C++ and Python that compute the same figure; the test explorer.doors runs them. */
export interface Doors {
  command: string;
  cpp: string;
  python: string;
}

export interface Page<S extends State> {
  /** What draws: geometry, nets, selectability, counting. */
  engine: Engine;
  /** All of the core, checkpoints too; several times as large, so it is loaded by the first chapter that asks. */
  whole(): Engine;
  store: Store<S>;
  /** The chapter's text on the page. */
  text: HTMLElement;
  /** The element of the chapter's text with that `data-slot`. */
  slot(name: string): HTMLElement;
  /** Done when the chapter has been mounted. */
  mounted: Promise<void>;
  /** Runs `draw` now, after every change of state and of theme, and until the chapter is left. */
  onChange(draw: (state: S) => void): void;
  /** Runs when the chapter is left. */
  onLeave(clean: () => void): void;
  /** Disposes of `part` when the chapter is left. */
  keep(part: { dispose(): void }): void;
  /** Announces a change to screen readers, politely and at most once a second. */
  say: (text: string) => void;
}

/**
 * One chapter: its text reads on its own, its slots hold pictures and controls, and its state is what a link
 * to it carries. A chapter is a folder entry in `chapters.ts`; nothing else names it.
 */
export interface Chapter<S extends State = State> {
  /** HTML with formulas, made from the chapter's .html file. */
  text: string;
  defaults: S;
  /** What a link may give the values of the state. */
  rules: Rules<S>;
  presets: Preset<S>[];
  /** What the chapter is after, in the order of its references. */
  sources: Source[];
  doors(state: S): Doors;
  mount(page: Page<S>): void | Promise<void>;
}

/** A chapter of some state as one of any, for the list of all. */
export const chapter = <S extends State>(value: Chapter<S>): Chapter => value as unknown as Chapter;
