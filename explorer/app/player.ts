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
}

const rounded = (value: number): number => Number(value.toFixed(3));

/** A button that animates a number of the state; with reduced motion, each press advances it by one. */
export function player<S extends State>(page: Page<S>, run: Run<S>): HTMLButtonElement {
  let stop: (() => void) | null = null;
  const end = () => {
    stop?.();
    stop = null;
    play.textContent = "Play";
  };
  const play = button(
    "Play",
    () => {
      if (stop !== null) return end();
      const now = run.read(page.store.get());
      const from = now >= run.to() ? run.from : now;
      const to = still.matches ? Math.min(run.to(), Math.floor(from) + 1) : run.to();
      play.textContent = "Pause";
      stop = () => {};
      stop = glide(from, to, run.pace * (to - from), (value) => page.store.show(run.write(rounded(value))), end);
      if (play.textContent === "Play") stop = null;
    },
    { class: "action" },
  );
  page.onLeave(() => stop?.());
  return play;
}
