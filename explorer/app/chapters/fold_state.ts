import { newest } from "../../engine/client";
import type { Page } from "../chapter";
import type { Point } from "../plane";

export const defaults = {
  eps: 0.01,
  stretch: 2,
  shift: 1.2,
  /** The point that is followed, in degrees around the circle. */
  angle: 50,
  path: "shift",
};
export type State = typeof defaults;

export const paths: [string, string][] = [
  ["stretch", "the stretched circle"],
  ["shift", "the shifted circle"],
  ["line", "a straight line, y = 0.5"],
];

/** Without eps, u of the origin would be undefined. */
export const epsOf = (state: State): number => Math.max(state.eps, 1e-12);

const radians = (degrees: number): number => (degrees * Math.PI) / 180;
export const onCircle = (degrees: number): Point => [Math.cos(radians(degrees)), Math.sin(radians(degrees))];
export const circle = (count: number): Float64Array =>
  new Float64Array(Array.from({ length: count }, (_, i) => onCircle((360 * (i + 0.5)) / count)).flat());
export const pair = (values: Float64Array, i: number): Point => [values[2 * i] ?? 0, values[2 * i + 1] ?? 0];

/** Draws for the newest state whenever `key` of it changes; done after the first time. */
export function settled(
  page: Page<State>,
  key: (state: State) => string,
  draw: (state: State) => Promise<void>,
): Promise<void> {
  return new Promise((done, fail) => {
    let last = "";
    const run = newest((state: State) => draw(state).then(done, fail));
    page.onChange((state) => {
      if (key(state) === last) return;
      last = key(state);
      run(state);
    });
  });
}
