import type { Engine } from "../../engine/client";
import { onMap, samples } from "../../engine/playground";
import { button, el } from "../../shared/dom";
import { color } from "../../shared/theme";

/** Side of a picture in pixels, and the samples in it. */
const side = 44;
const count = 160;

/** Points in a square from −1 to 1, and their classes. */
export interface Thumb {
  x: ArrayLike<number>;
  labels: ArrayLike<number>;
}

/** A button with a picture of samples. */
export function thumbnail(
  label: string,
  chosen: () => void,
): { element: HTMLButtonElement; draw: (points: Thumb | null) => void } {
  const canvas = el("canvas", { width: 2 * side, height: 2 * side, "aria-hidden": "true" });
  const element = button("", chosen, { class: "thumbnail", title: label, "aria-label": label });
  element.append(canvas);
  return {
    element,
    draw(points) {
      const context = canvas.getContext("2d");
      if (context === null) return;
      context.clearRect(0, 0, 2 * side, 2 * side);
      if (points === null) {
        context.fillStyle = color("--muted");
        context.font = `${1.1 * side}px sans-serif`;
        context.textAlign = "center";
        context.textBaseline = "middle";
        return context.fillText("+", side, side);
      }
      const tints = [color("--series-1"), color("--series-2")];
      for (let i = 0; i < points.labels.length; ++i) {
        context.fillStyle = tints[points.labels[i] ?? 0] ?? tints[0]!;
        context.beginPath();
        context.arc(
          side * (1 + 0.92 * (points.x[2 * i] ?? 0)),
          side * (1 - 0.92 * (points.x[2 * i + 1] ?? 0)),
          3.2,
          0,
          2 * Math.PI,
        );
        context.fill();
      }
    },
  };
}

/** Samples of a task for its picture; none for the reader's own. */
export async function drawSamples(engine: Engine, task: string, noise: number): Promise<Thumb | null> {
  if (task === "own") return null;
  const { x, labels, width } = await samples(engine, { task, rows: count, seed: 1, noise }, 1);
  const flat = width === 3 ? (await onMap(engine, x)).map((value, i) => (i % 2 === 0 ? value / Math.PI : value)) : x;
  const most = flat.reduce((sum, value) => Math.max(sum, Math.abs(value)), 1e-9);
  return { x: flat.map((value) => value / most), labels };
}
