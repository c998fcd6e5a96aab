import { button } from "../shared/dom";
import type { Page } from "./chapter";
import { toQuery } from "./link";
import { glide, still } from "./scrolly";
import type { State } from "./link";

interface Run<S extends State> {
  read(state: S): number;
  write(value: number): Partial<S>;
  from: number;
  to(): number;
  /** Milliseconds a unit. */
  pace: number;
  /** What the button says while nothing plays. */
  label?: string;
  /**
   * It plays by itself, once, when this comes into view, unless a link or the reader has changed the value, up to `until`
   * or to the end. The first figure of a chapter opens it.
   */
  seen?: { element: HTMLElement; opens?: boolean; until?: number };
}

const rounded = (value: number): number => Number(value.toFixed(3));

/**
 * Calls `done` at the reader's first touch outside of `spared`. A finger that scrolls is none: its pointer is cancelled.
 */
export function onTouch(spared: HTMLElement, done: () => void): () => void {
  const kinds = ["pointerdown", "pointerup", "keydown"] as const;
  const touched = (event: Event) => {
    if (spared.contains(event.target as Node)) return;
    if (event.type === "pointerdown" && (event as PointerEvent).pointerType === "touch") return;
    done();
  };
  for (const kind of kinds) addEventListener(kind, touched, { capture: true });
  return () => kinds.forEach((kind) => removeEventListener(kind, touched, { capture: true }));
}

/** Calls `done` once most of `element` is in view; gives what stops waiting. */
export function whenSeen(element: HTMLElement, done: () => void): () => void {
  const watch = new IntersectionObserver(
    (entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      watch.disconnect();
      done();
    },
    { threshold: 0.5 },
  );
  watch.observe(element);
  return () => watch.disconnect();
}

/** Whether the state is that of the chapter's defaults: nothing in a link and nobody has changed it. */
export const isUntouched = <S extends State>({ store }: Page<S>): boolean =>
  toQuery(store.get(), store.defaults) === "";

/**
 * A button that animates a number of the state, until the reader changes it; with reduced motion, each press advances
 * it by one. What plays by itself also ends at the first touch.
 */
export function player<S extends State>(page: Page<S>, run: Run<S>): HTMLButtonElement {
  const { store } = page;
  const { label = "Play" } = run;
  let stop: (() => void) | null = null;
  let mine = false;
  /** Whether it plays by itself. */
  let opening = false;
  let forget = () => {};
  const end = () => {
    stop?.();
    stop = null;
    opening = false;
    forget();
    tell(false);
  };
  /** Ends with what is on show; if something else has changed the state, `end` is enough. */
  const finish = () => {
    if (stop === null) return;
    const told = opening;
    end();
    store.rest(told);
  };
  const start = (from: number, last: number, show: (part: Partial<S>) => void) => {
    const to = still.matches ? Math.min(last, Math.floor(from) + 1) : last;
    tell(true);
    stop = () => {};
    const step = (value: number) => {
      const part = run.write(rounded(value));
      // Most frames change nothing of a number that moves in steps.
      if (Object.entries(part).every(([key, next]) => String(next) === String(store.get()[key]))) return;
      mine = true;
      show(part);
      mine = false;
    };
    stop = glide(from, to, run.pace * (to - from), step, finish);
    if (play.dataset["player"] === "still") stop = null;
  };
  const again = () => {
    const now = run.read(store.get());
    start(now >= run.to() ? run.from : now, run.to(), (part) => store.show(part));
  };
  const play = button(label, () => (stop === null ? again() : finish()), { class: "action", "data-player": "still" });
  const tell = (playing: boolean) => {
    play.dataset["player"] = playing ? "playing" : "still";
    play.textContent = playing ? "Pause" : label;
  };
  page.onLeave(
    store.subscribe((state, before) => {
      if (stop !== null && !mine && run.read(state) !== run.read(before)) end();
    }),
  );
  page.onLeave(end);
  if (run.seen === undefined || still.matches) return play;
  const { element, opens = false, until } = run.seen;
  if (opens && !isUntouched(page)) return play;
  const open = () => {
    if (stop !== null || run.read(store.get()) !== run.read(store.defaults)) return;
    opening = true;
    start(run.from, until ?? run.to(), (part) => store.tell(part));
    forget = onTouch(play, finish);
  };
  // Before, there may be nothing to see yet.
  void page.mounted.then(() => page.onLeave(whenSeen(element, open)));
  return play;
}

/** A button with which the reader holds a training up and lets it go on. */
export interface Hold {
  button: HTMLButtonElement;
  /** Until the reader goes on; null where nothing is held up. */
  held(): Promise<void> | null;
  goOn(): void;
  /** Shows whether something is trained `now`. */
  tell(now: boolean): void;
}

export function hold(word: string, told: (now: boolean) => void = () => {}): Hold {
  let held: Promise<void> | null = null;
  let goOn = () => {};
  const tell = (now: boolean) => {
    pressed.disabled = !now;
    pressed.textContent = held === null ? word : "Go on";
    told(now);
  };
  const pressed = button(
    word,
    () => {
      if (held !== null) return goOn();
      held = new Promise((done) => {
        goOn = () => {
          held = null;
          tell(true);
          done();
        };
      });
      tell(true);
    },
    { class: "action" },
  );
  pressed.disabled = true;
  return { button: pressed, held: () => held, goOn: () => goOn(), tell };
}
