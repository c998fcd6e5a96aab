import type { Page } from "./chapter";
import { number } from "../shared/format";
import type { KeyOf, SliderOptions } from "./controls";
import type { State } from "./link";

/** How a number of the state moves: as a slider does, or from one of `values` to the next. */
type Moves = (SliderOptions | { values: readonly number[] }) & { show?: (value: number) => string };

/** Pixels of a drag over the whole range, and those that a step takes at least and at most. */
const reach = 240;
const stepPixels = { min: 0.5, max: 14 };
const tenfold = 10;

interface Track {
  steps: number;
  /** The step that is nearest to a value of the state, and the value of a step. */
  stepOf(value: number): number;
  valueOf(step: number): number;
}

function trackOf(moves: Moves): Track {
  if ("values" in moves) {
    const { values } = moves;
    const distance = (value: number, step: number) => Math.abs((values[step] ?? 0) - value);
    return {
      steps: values.length - 1,
      stepOf: (value) =>
        values.reduce((best, _, step) => (distance(value, step) < distance(value, best) ? step : best), 0),
      valueOf: (step) => values[step] ?? 0,
    };
  }
  const { min, max, step, log = false } = moves;
  const [least, most] = log ? [Math.log10(min), Math.log10(max)] : [min, max];
  const inward = (value: number) => (log ? Math.log10(Math.max(value, min)) : value);
  return {
    steps: Math.round((most - least) / step),
    stepOf: (value) => Math.round((inward(value) - least) / step),
    // Without the last bits that sums of steps bring.
    valueOf: (at) =>
      log ? Number((10 ** (least + at * step)).toPrecision(3)) : Number((least + at * step).toPrecision(12)),
  };
}

/** How a number is part of the state. */
interface Bound<S extends State> {
  read: (state: S) => number;
  write: (value: number) => Partial<S>;
}

/** Without an exponent, which is no number to ARIA. */
const decimal = (value: number): string =>
  Number.isInteger(value) ? String(value) : value.toFixed(12).replace(/\.?0+$/, "");

/**
 * Makes every `[data-number="name"]` of the text a number of the state that the reader can drag, or move by arrow keys: a
 * slider to a screen reader.
 */
export function boundInText<S extends State>(
  page: Page<S>,
  name: string,
  label: string,
  { read, write }: Bound<S>,
  moves: Moves,
): void {
  const { show = (value: number) => number(value, 4) } = moves;
  const track = trackOf(moves);
  const places = [...page.text.querySelectorAll<HTMLElement>(`[data-number="${name}"]`)];
  if (places.length === 0) throw new Error(`the chapter's text has no number ${name}`);
  const room = Math.max(...[0, track.steps].map((step) => show(track.valueOf(step)).length));
  const pixels = Math.min(stepPixels.max, Math.max(stepPixels.min, reach / track.steps));
  const inside = (step: number) => Math.min(track.steps, Math.max(0, step));
  const now = () => track.stepOf(read(page.store.get()));
  for (const place of places) {
    place.classList.add("drag-number");
    place.tabIndex = 0;
    place.title = "Drag, or press the arrow keys";
    for (const [key, value] of Object.entries({
      role: "slider",
      "aria-label": label,
      "aria-valuemin": decimal(track.valueOf(0)),
      "aria-valuemax": decimal(track.valueOf(track.steps)),
    }))
      place.setAttribute(key, value);
    // What follows it in the sentence stays where it is.
    place.style.minWidth = `${room}ch`;
    place.addEventListener("keydown", (event) => {
      const steps: Record<string, number> = {
        ArrowRight: 1,
        ArrowUp: 1,
        ArrowLeft: -1,
        ArrowDown: -1,
        PageUp: tenfold,
        PageDown: -tenfold,
        Home: -Infinity,
        End: Infinity,
      };
      const by = event.ctrlKey || event.metaKey || event.altKey ? undefined : steps[event.key];
      if (by === undefined) return;
      event.preventDefault();
      page.store.commit(write(track.valueOf(inside(now() + by * (event.shiftKey ? tenfold : 1)))));
    });
    let held: { x: number; step: number } | null = null;
    place.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      event.preventDefault();
      place.focus({ preventScroll: true });
      place.setPointerCapture(event.pointerId);
      held = { x: event.clientX, step: now() };
    });
    place.addEventListener("pointermove", ({ clientX }) => {
      if (held === null) return;
      const step = inside(held.step + Math.round((clientX - held.x) / pixels));
      if (step !== now()) page.store.drag(write(track.valueOf(step)));
    });
    const release = () => {
      if (held !== null) page.store.commit();
      held = null;
    };
    place.addEventListener("pointerup", release);
    place.addEventListener("pointercancel", release);
  }
  page.onChange((state) => {
    const value = read(state);
    for (const place of places) {
      place.textContent = show(value);
      place.setAttribute("aria-valuenow", decimal(value));
      place.setAttribute("aria-valuetext", show(value));
    }
  });
}

/** A number of the state in the chapter's sentences. */
export const numberInText = <S extends State>(
  page: Page<S>,
  label: string,
  key: KeyOf<S, number>,
  moves: Moves,
): void =>
  boundInText(
    page,
    key,
    label,
    { read: (state) => state[key] as number, write: (value) => ({ [key]: value }) as Partial<S> },
    moves,
  );

/** An entry of a list of the state in the chapter's sentences, by the name `key-index`, from 1. */
export const entryInText = <S extends State>(
  page: Page<S>,
  label: string,
  key: KeyOf<S, number[]>,
  index: number,
  moves: Moves,
): void =>
  boundInText(
    page,
    `${key}-${index + 1}`,
    label,
    {
      read: (state) => (state[key] as number[])[index] ?? 0,
      write: (value) =>
        ({ [key]: (page.store.get()[key] as number[]).map((old, i) => (i === index ? value : old)) }) as Partial<S>,
    },
    moves,
  );
