import type { Engine } from "../engine/client";
import { stepNames, steps } from "../engine/geometry";
import { normals } from "../engine/random";
import { button, el } from "../shared/dom";
import { drawCloud } from "./cloud";
import type { Cloud } from "./cloud";
import { cssColors } from "./colors";
import { figure, ready } from "./figure";
import { eased } from "./motion";
import type { Motion, Pen } from "./motion";

const pointCount = 900;
/** The norm of the chapter Geometry as it begins, so that each step leads to the same picture there. */
const spec = { kind: "layer" as const, width: 3, eps: 1e-4, gain: [1, 1.8, 0.6], bias: [0.8, -0.5, 0.6] };

const says = [
  "Vectors of three numbers, each a point.",
  "Subtract the mean: all points move onto one plane.",
  "Divide by the deviation: only directions are left.",
  "Multiply by the gain: the circle becomes an ellipse.",
  "Add the bias: the ellipse moves. No output leaves it.",
];

/** Seconds that a step rests and moves. */
const [rests, moves] = [1.3, 1.5];
const period = rests + moves;

/** The moment of the four steps after so many seconds; the last way leads back to the input. */
function momentOf(seconds: number): number {
  const beat = Math.floor(seconds / period) % says.length;
  const part = eased(((seconds % period) - rests) / moves);
  return beat < 4 ? beat + part : 4 * (1 - part);
}
/** When a step has just been reached, in seconds. */
export const reached = (step: number): number => step * period + 0.01;

async function cloudOf(engine: Engine): Promise<Cloud> {
  const input = await normals(engine, 3 * pointCount, 1);
  // Around the origin in the plane orthogonal to all-ones.
  const around = Float64Array.from({ length: 3 * 97 }, (_, i) => {
    const angle = (2 * Math.PI * Math.floor(i / 3)) / 96;
    const [u, v] = [
      [1, -1, 0],
      [1, 1, -2],
    ].map((side) => side[i % 3]! / Math.hypot(...side)) as [number, number];
    return 3 * (u * Math.cos(angle) + v * Math.sin(angle));
  });
  const [stages, ring] = await Promise.all([steps(engine, spec, input), steps(engine, spec, around)]);
  return { stages: [input, ...stages], ring: [around, ...ring], colors: cssColors(input) };
}

/** The four steps of a norm, which the reader may stop and go through. */
export function hero(engine: Engine, motion: Motion): HTMLElement {
  const canvas = el("canvas", {
    class: "hero-canvas",
    role: "img",
    "aria-label": "A cloud of points in space goes through the four steps of a norm and ends as an ellipse.",
  });
  const element = figure({ id: "hero", content: canvas });
  const links = ["input", ...stepNames].map((name, at) =>
    el("a", { href: at === 0 ? "#/geometry" : `#/geometry?at=${at}` }, name),
  );
  const words = el("p", {}, says[0]!);
  const pause = button("Pause", () => turn(!motion.playing), { class: "quiet" });
  const turn = (playing: boolean) => {
    motion.play(playing);
    pause.textContent = playing ? "Pause" : "Play";
  };
  turn(motion.playing);
  element
    .querySelector("figcaption")!
    .replaceChildren(
      el("div", { class: "hero-steps", role: "group", "aria-label": "Steps of a norm, in Geometry" }, ...links, pause),
      words,
    );
  let shown = -1;
  const mark = (at: number) => {
    const now = Math.round(at);
    if (now === shown) return;
    shown = now;
    links.forEach((link, i) => link.classList.toggle("now", i === now));
    words.textContent = says[now]!;
    element.dataset["at"] = String(now);
  };
  void cloudOf(engine).then((cloud) => {
    motion.add(canvas, (pen: Pen, seconds: number) => {
      const at = momentOf(seconds);
      // A quarter turn to and fro, about the direction in which a projection is seen best.
      drawCloud(pen, cloud, at, -0.41 + 0.4 * Math.sin(seconds / 5), 0.02);
      mark(at);
      ready(element);
    });
  });
  return element;
}
