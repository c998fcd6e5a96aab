import { drawCloud, eye } from "./cloud";
import { cssColors, digitTint } from "./colors";
import { between, ink, swing } from "./motion";
import type { Moving, Pen } from "./motion";
import { theme } from "../shared/theme";

/** States of the chapters' first figures, which `node app/pictures.mjs` takes from the chapters themselves. */
export interface States {
  geometry: { stages: number[][]; ring: number[][] };
  /** A circle that is shifted and normalized; where its points were from left to right. */
  fold: { frames: number[][]; before: number[] };
  /** Probability of the second class in percent over a square, the lowest row first, as the net learns. */
  playground: { side: number; frames: number[][] };
  /** Keys of the plane, the corners of their hull in order, and for queries all around which key wins. */
  selectability: { keys: number[]; corners: number[]; winners: number[] };
  /** The four points of XOR on the circle, as the direction turns. */
  nonlinearity: { frames: number[][] };
  /** A line for each unit of the LSTM, from −1 to 1. */
  counting: { units: number[][]; counter: number };
  /** Lengths of each token's vector at each norm, in parts of the longest. */
  trace: { letters: string[]; lengths: number[][] };
  /** The ellipse of A as its gain changes, that of B, and outputs. */
  signature: { a: number[][]; b: number[]; outputs: number[] };
  /** Digits as points of a sphere after each layer. */
  digits: { labels: number[]; layers: number[][] };
  /** Lengths of the axes of each norm, in parts of the longest. */
  checkpoint: { norms: number[][] };
}

const pairs = (values: ArrayLike<number>): [number, number][] =>
  Array.from({ length: values.length / 2 }, (_, i) => [values[2 * i]!, values[2 * i + 1]!]);
const series = (index: number): string => ink(`--series-${index}`);
const thin = 0.016;
const scaled = (values: number[], by: number): number[] => values.map((value) => by * value);
const circle = Array.from({ length: 130 }, (_, i) =>
  i % 2 === 0 ? Math.cos((Math.PI * i) / 64) : Math.sin((Math.PI * (i - 1)) / 64),
);

/** A line over the width, from values between 0 and 1, up to a part of its length. */
function curve(pen: Pen, values: number[], part: number, tint: string, width: number, alpha: number): void {
  const count = Math.max(2, Math.round(part * values.length));
  const wide = 0.86 * pen.aspect;
  const points = values
    .slice(0, count)
    .flatMap((value, i) => [wide * ((2 * i) / (values.length - 1) - 1), 0.8 * (2 * value - 1)]);
  pen.line(points, tint, width, alpha);
}

/** What moves in the picture of each chapter, by its id. */
export const thumbnails: { [K in keyof States]: (states: States[K]) => Moving } = {
  geometry: ({ stages, ring }) => {
    const cloud = { stages, ring, colors: cssColors(Float64Array.from(stages[0]!)) };
    return (pen, seconds) => drawCloud(pen, cloud, 4 * swing(seconds, 12), -0.41, 0.036);
  },

  fold:
    ({ frames, before }) =>
    (pen, seconds) => {
      pen.line(scaled(circle, 0.8), ink("--rule"), thin);
      pairs(between(frames, swing(seconds, 7))).forEach(([x, y], i) =>
        pen.dot(0.8 * x, 0.8 * y, 0.05, series(before[i]! < 0 ? 1 : 2), 0.85),
      );
    },

  playground:
    ({ side, frames }) =>
    (pen, seconds) => {
      const cell = 1.8 / side;
      between(frames, swing(seconds, 18)).forEach((percent, i) => {
        const [x, y] = [(i % side) * cell - 0.9, Math.floor(i / side) * cell - 0.9];
        const sure = Math.abs(percent - 50) / 50;
        pen.box(x, y, cell, cell, series(percent < 50 ? 1 : 2), 0.12 + 0.75 * sure);
      });
    },

  selectability:
    ({ keys, corners, winners }) =>
    (pen, seconds) => {
      const places = pairs(scaled(keys, 0.36));
      const hull = corners.flatMap((corner) => places[corner]!);
      pen.line([...hull, ...hull.slice(0, 2)], ink("--muted"), thin, 0.8, ink("--tint"));
      const angle = (seconds / 8) % 1;
      const won = winners[Math.floor(angle * winners.length)]!;
      places.forEach(([x, y], i) => {
        const lost = !corners.includes(i);
        if (i === won) pen.dot(x, y, 0.14, series(3), 0.35);
        pen.dot(x, y, 0.075, series(lost ? 2 : 1));
        if (lost) pen.dot(x, y, 0.04, ink("--paper"));
      });
      const tip = [0.55 * Math.cos(2 * Math.PI * angle), 0.55 * Math.sin(2 * Math.PI * angle)] as const;
      pen.line([0, 0, ...tip], ink("--ink"), 2 * thin);
      pen.dot(...tip, 0.045, ink("--ink"));
    },

  nonlinearity:
    ({ frames }) =>
    (pen, seconds) => {
      pen.line(scaled(circle, 0.8), ink("--muted"), thin, 0.6);
      // Up to half a right angle, where points of a class fall on one another.
      pairs(between(frames, 0.5 * swing(seconds, 6))).forEach(([x, y], i) => {
        pen.line([0.8 * x, 0.8 * y, 0, 0.8 * y], ink("--muted"), thin, 0.5);
        pen.dot(0.8 * x, 0.8 * y, 0.09, series(i < 2 ? 1 : 2));
        if (i > 1) pen.dot(0.8 * x, 0.8 * y, 0.05, ink("--paper"));
      });
    },

  counting:
    ({ units, counter }) =>
    (pen, seconds) => {
      const part = Math.max(0.05, swing(seconds, 12));
      units.forEach((values, unit) => {
        if (unit !== counter) curve(pen, values, part, ink("--muted"), thin, 0.55);
      });
      curve(pen, units[counter]!, part, series(6), 2.4 * thin, 1);
    },

  trace:
    ({ letters, lengths }) =>
    (pen, seconds) => {
      const now = Math.floor(seconds / 0.7) % letters.length;
      const step = (1.8 * pen.aspect) / letters.length;
      letters.forEach((letter, i) => {
        const x = (i + 0.5) * step - 0.9 * pen.aspect;
        const on = i === now;
        lengths.forEach((ofNorm, norm) =>
          pen.dot(
            x,
            1.35 * (norm / (lengths.length - 1)) - 0.5,
            0.015 + 0.075 * ofNorm[i]!,
            series(on ? 2 : 1),
            on ? 1 : 0.55,
          ),
        );
        // The others would cover one another; its middle stays so far inside that all of it is seen.
        const inside = 0.9 * pen.aspect - 0.06 * letter.length;
        if (on) pen.text(letter, Math.max(-inside, Math.min(inside, x)), -0.88, 0.22, ink("--ink"));
      });
    },

  signature:
    ({ a, b, outputs }) =>
    (pen, seconds) => {
      pen.line(scaled(b, 0.85), series(2), 1.6 * thin, 0.9);
      pen.line(scaled(between(a, swing(seconds, 7)), 0.85), series(1), 1.6 * thin, 0.9);
      for (const [x, y] of pairs(scaled(outputs, 0.85))) pen.dot(x, y, 0.055, series(1));
    },

  digits:
    ({ labels, layers }) =>
    (pen, seconds) => {
      const look = eye(seconds / 9, 0.35);
      const at = between(layers, swing(seconds, 8));
      pen.line(scaled(circle, 0.86), ink("--rule"), thin);
      labels.forEach((digit, i) => {
        const [x, y, near] = look(at[3 * i]!, at[3 * i + 1]!, at[3 * i + 2]!);
        pen.dot(0.86 * x, 0.86 * y, 0.04, digitTint(digit, theme() === "dark"), 0.35 + 0.3 * (1 + near));
      });
    },

  checkpoint:
    ({ norms }) =>
    (pen, seconds) => {
      const now = Math.floor(seconds / 1.1) % norms.length;
      norms.forEach((lengths, norm) => norm !== now && curve(pen, lengths, 1, ink("--muted"), thin, 0.5));
      curve(pen, norms[now]!, 1, series(1), 2.4 * thin, 1);
    },
};
