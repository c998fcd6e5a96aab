import { button } from "../shared/dom";
import type { Page } from "./chapter";
import { glide, still } from "./scrolly";
import type { State } from "./link";

interface Run<S extends State> {
  read(state: S): number;
  write(value: number): Partial<S>;
  from: number;
  to(): number;
  /** Milliseconds a unit. */
  pace: number;
  /** Where it plays by itself once this comes into view, unless the state is not that of the beginning. */
  seen?: HTMLElement;
}

const rounded = (value: number): number => Number(value.toFixed(3));

/**
 * A button that animates a number of the state, until the reader changes it; with reduced motion, each press advances
 * it by one.
 */
export function player<S extends State>(page: Page<S>, run: Run<S>): HTMLButtonElement {
  const { store } = page;
  let stop: (() => void) | null = null;
  let mine = false;
  const end = () => {
    stop?.();
    stop = null;
    play.textContent = "Play";
  };
  const start = (show: (part: Partial<S>) => void) => {
    const now = run.read(store.get());
    const from = now >= run.to() ? run.from : now;
    const to = still.matches ? Math.min(run.to(), Math.floor(from) + 1) : run.to();
    play.textContent = "Pause";
    stop = () => {};
    const step = (value: number) => {
      mine = true;
      show(run.write(rounded(value)));
      mine = false;
    };
    stop = glide(from, to, run.pace * (to - from), step, end);
    if (play.textContent === "Play") stop = null;
  };
  const play = button("Play", () => (stop === null ? start((part) => store.show(part)) : end()), { class: "action" });
  page.onLeave(
    store.subscribe((state, before) => {
      if (stop !== null && !mine && run.read(state) !== run.read(before)) end();
    }),
  );
  page.onLeave(() => stop?.());
  if (run.seen !== undefined && !still.matches) {
    const watch = new IntersectionObserver(
      (entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        watch.disconnect();
        if (stop === null && run.read(store.get()) === run.from) start((part) => store.tell(part));
      },
      { threshold: 0.6 },
    );
    watch.observe(run.seen);
    page.onLeave(() => watch.disconnect());
  }
  return play;
}
