// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { player } from "../player";
import { still } from "../scrolly";
import { pageOf } from "./page";

let now = 0;
let frames: FrameRequestCallback[] = [];
/** Shows the next frame, so many milliseconds later. */
const frame = (milliseconds: number) => {
  now += milliseconds;
  frames.splice(0).forEach((work) => work(now));
};

beforeEach(() => {
  [now, frames] = [0, []];
  vi.spyOn(performance, "now").mockImplementation(() => now);
  vi.stubGlobal("requestAnimationFrame", (work: FrameRequestCallback) => frames.push(work));
  vi.stubGlobal("cancelAnimationFrame", () => (frames = []));
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const run = {
  read: ({ at }: { at: number }) => at,
  write: (at: number) => ({ at }),
  from: 0,
  to: () => 4,
  pace: 100,
};

test("it moves the number at its pace, pauses where it is and begins again at its end", () => {
  const page = pageOf({ at: 0 });
  const play = player(page, run);
  play.click();
  expect([play.textContent, play.dataset["player"]]).toEqual(["Pause", "playing"]);
  frame(50);
  expect(page.store.get().at).toBe(0.5);
  play.click();
  expect([play.textContent, page.store.get().at, page.store.moving]).toEqual(["Play", 0.5, false]);
  frame(50);
  expect(page.store.get().at).toBe(0.5);
  play.click();
  for (let i = 0; i < 4; ++i) frame(100);
  expect([page.store.get().at, play.dataset["player"], page.store.canUndo]).toEqual([4, "still", false]);
  play.click();
  frame(100);
  expect(page.store.get().at).toBe(1);
});

test("a slow frame counts as a tenth of a second, so that nothing is skipped", () => {
  const page = pageOf({ at: 0 });
  player(page, run).click();
  frame(5000);
  expect(page.store.get().at).toBe(1);
});

test("the reader's change ends it, and so does leaving", () => {
  const page = pageOf({ at: 0 });
  const play = player(page, run);
  play.click();
  frame(100);
  page.store.commit({ at: 3 });
  expect(play.dataset["player"]).toBe("still");
  frame(100);
  expect(page.store.get().at).toBe(3);
  play.click();
  page.leave();
  frame(100);
  expect(page.store.get().at).toBe(3);
});

test("a change of something else does not end it", () => {
  const page = pageOf({ at: 0, n: 1 });
  const play = player(page, { ...run, read: ({ at }) => at, write: (at) => ({ at }) });
  play.click();
  page.store.commit({ n: 2 });
  frame(100);
  expect([page.store.get().at, play.dataset["player"]]).toEqual([1, "playing"]);
});

test("where motion is unwelcome a press is one step", () => {
  vi.spyOn(still, "matches", "get").mockReturnValue(true);
  const page = pageOf({ at: 0 });
  const play = player(page, run);
  play.click();
  expect([page.store.get().at, play.dataset["player"], frames.length]).toEqual([1, "still", 0]);
  play.click();
  expect(page.store.get().at).toBe(2);
});
