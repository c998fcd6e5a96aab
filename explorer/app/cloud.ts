import { ink } from "./motion";
import type { Pen } from "./motion";

/** Points in space at each step of a norm, a colour each, and a circle that goes through the same steps. */
export interface Cloud {
  stages: ArrayLike<number>[];
  colors: string[];
  ring: ArrayLike<number>[];
}

/** Half the height of what is in view at each step. */
const reaches = [3.3, 3.1, 2.3, 2.8, 3.1];

/** An eye that looks at the origin from far away, z up: what it sees of a point as x, y and how near the point is. */
export function eye(turn: number, height: number): (x: number, y: number, z: number) => [number, number, number] {
  const [cos, sin, up, flat] = [Math.cos(turn), Math.sin(turn), Math.sin(height), Math.cos(height)];
  return (x, y, z) => {
    const [across, away] = [cos * y - sin * x, cos * x + sin * y];
    return [across, flat * z - up * away, flat * away + up * z];
  };
}

/** The cloud at a moment of the four steps, `at` from 0 (input) to 4 (shift). */
export function drawCloud(pen: Pen, { stages, colors, ring }: Cloud, at: number, turn: number, radius: number): void {
  const from = Math.min(3, Math.floor(at));
  const part = at - from;
  const reach = reaches[from]! + part * (reaches[from + 1]! - reaches[from]!);
  const look = eye(turn, 0.38);
  const placed = (all: ArrayLike<number>[], i: number) => {
    const value = (k: number) => {
      const [a, b] = [all[from]![3 * i + k]!, all[from + 1]![3 * i + k]!];
      return (a + part * (b - a)) / reach;
    };
    return look(value(0), value(1), value(2));
  };
  const path = Array.from({ length: ring[0]!.length / 3 }, (_, i) => placed(ring, i));
  const shown = Math.min(1, Math.max(0, at - 1.4) / 0.6);
  if (shown > 0) {
    const flat = path.flatMap(([x, y]) => [x, y]);
    pen.line(flat, ink("--ink"), 0.006, 0.55 * shown);
    pen.line(flat, ink("--accent"), 0, 0.07 * shown, ink("--accent"));
  }
  // The direction that the first step removes, until the gain turns the plane.
  const arrow = Math.min(1, Math.max(0, 2.5 - at)) * Math.min(1, at / 0.3);
  if (arrow > 0) {
    const end = 0.83;
    const [x, y] = look(end / Math.sqrt(3), end / Math.sqrt(3), end / Math.sqrt(3));
    pen.line([-x, -y, x, y], ink("--alarm"), 0.007, 0.8 * arrow);
    pen.text("all-ones", 1.1 * x, 1.1 * y, 0.065, ink("--alarm"), arrow);
  }
  const dots = colors.map((fill, i) => ({ fill, at: placed(stages, i) }));
  dots.sort((a, b) => a.at[2] - b.at[2]);
  for (const { fill, at: spot } of dots) {
    const near = Math.min(1, Math.max(0, 0.5 + 0.5 * spot[2]));
    pen.dot(spot[0], spot[1], radius * (0.65 + 0.6 * near), fill, 0.35 + 0.65 * near);
  }
}
