import { button } from "../shared/dom";
import type { Page } from "./chapter";
import { toQuery } from "./link";
import type { State } from "./link";

/** Matches where motion is unwelcome. */
export const still = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * Shows in the chapter's figure what the `section[data-step]` that is being read is about: `show` tells the store that
 * step's values, and may return what stops it. A link's state and the reader's changes stay until "Follow the story",
 * a button in the slot "story", is pressed.
 */
export function followStory<S extends State>(page: Page<S>, show: (step: string) => (() => void) | void): void {
  const { store } = page;
  const place = page.slot("story");
  const sections = [...(place.closest("article")?.querySelectorAll<HTMLElement>("section[data-step]") ?? [])];
  let following = toQuery(store.get(), store.defaults) === "";
  let step = "";
  let stop = () => {};
  const follow = () => {
    stop();
    stop = (following && step !== "" ? show(step) : undefined) ?? (() => {});
  };
  const resume = button("Follow the story", () => follows(true), { class: "action" });
  const follows = (now: boolean) => {
    following = now;
    resume.hidden = now;
    follow();
  };
  place.append(resume);
  const look = () => {
    // On a phone the figure takes the upper half of the screen, so the reading line is below the middle.
    const line = innerHeight * 0.6;
    const now = sections.filter((section) => section.getBoundingClientRect().top < line).at(-1);
    for (const section of sections) section.classList.toggle("read", section === now);
    if (now?.dataset["step"] === step) return;
    step = now?.dataset["step"] ?? "";
    follow();
  };
  const options = { passive: true } as const;
  addEventListener("scroll", look, options);
  page.onLeave(
    store.subscribe((state, before) => {
      if (following && !store.told && toQuery(state, before) !== "") follows(false);
    }),
  );
  page.onLeave(() => {
    removeEventListener("scroll", look);
    stop();
  });
  follows(following);
}

/** Milliseconds of a frame that count: where drawing is slow it takes longer rather than leave out what it shows. */
const longestFrame = 100;

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
  let [last, passed] = [performance.now(), 0];
  let frame = 0;
  const step = (now: number) => {
    passed += Math.min(longestFrame, Math.max(0, now - last));
    last = now;
    const part = Math.min(1, passed / duration);
    show(from + (to - from) * part);
    if (part < 1) frame = requestAnimationFrame(step);
    else done();
  };
  frame = requestAnimationFrame(step);
  return () => cancelAnimationFrame(frame);
}
