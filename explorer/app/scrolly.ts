import type { Page } from "./chapter";
import type { State } from "./store";

/** Matches where motion is unwelcome. */
export const still = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * Reports which `section[data-step]` of the chapter is being read, once the reader scrolls; until then the state of
 * a link is kept.
 */
export function onReading<S extends State>(page: Page<S>, article: HTMLElement, read: (step: string) => void): void {
  const sections = [...article.querySelectorAll<HTMLElement>("section[data-step]")];
  let last = "";
  const look = () => {
    // On a phone the figure takes the upper half of the screen, so the reading line is below the middle.
    const line = innerHeight * 0.6;
    const now = sections.filter((section) => section.getBoundingClientRect().top < line).at(-1);
    const step = now?.dataset["step"] ?? "";
    for (const section of sections) section.classList.toggle("read", section === now);
    if (step === last) return;
    last = step;
    if (step !== "") read(step);
  };
  const options = { passive: true } as const;
  addEventListener("scroll", look, options);
  page.onLeave(() => removeEventListener("scroll", look));
}

/** Moves a number of the state to `to`, in `duration` milliseconds, at once where motion is unwelcome. */
export function glide(
  from: number,
  to: number,
  duration: number,
  show: (value: number) => void,
  done: () => void = () => {},
): () => void {
  if (still.matches || from === to) {
    show(to);
    done();
    return () => {};
  }
  const started = performance.now();
  let frame = 0;
  const step = (now: number) => {
    const part = Math.min(1, Math.max(0, (now - started) / duration));
    show(from + (to - from) * part);
    if (part < 1) frame = requestAnimationFrame(step);
    else done();
  };
  frame = requestAnimationFrame(step);
  return () => cancelAnimationFrame(frame);
}
