import { button, el } from "../shared/dom";
import { number } from "../shared/format";
import type { Page } from "./chapter";
import type { State } from "./link";

let lastId = 0;
const newId = (): string => `control-${++lastId}`;

/** The names of the values of type `T` in the state. */
export type KeyOf<S, T> = { [K in keyof S]: S[K] extends T ? K : never }[keyof S] & string;

export interface SliderOptions {
  min: number;
  max: number;
  step: number;
  /** The slider moves in powers of ten between `min` and `max`. */
  log?: boolean;
  show?: (value: number) => string;
}

/** A slider for the value behind `read` and `write`, with the value next to it. */
function sliderOf<S extends State>(
  page: Page<S>,
  label: string,
  read: (state: S) => number,
  write: (value: number) => Partial<S>,
  options: SliderOptions,
): HTMLElement {
  const id = newId();
  const { log = false, show = (value: number) => number(value, 4) } = options;
  const inward = (value: number) => (log ? Math.log10(Math.max(value, options.min)) : value);
  const outward = (value: number) => (log ? Number((10 ** value).toPrecision(3)) : value);
  const input = el("input", {
    id,
    type: "range",
    min: log ? Math.log10(options.min) : options.min,
    max: log ? Math.log10(options.max) : options.max,
    step: options.step,
  });
  const output = el("output", { for: id });
  input.addEventListener("input", () => page.store.drag(write(outward(Number(input.value)))));
  input.addEventListener("change", () => page.store.commit());
  page.onChange((state) => {
    const value = read(state);
    if (Math.abs(inward(value) - Number(input.value)) > 1e-12) input.value = String(inward(value));
    output.textContent = show(value);
    input.setAttribute("aria-valuetext", show(value));
  });
  return el("div", { class: "control slider" }, el("label", { for: id }, label), input, output);
}

/** A slider of one number of the state. */
export const slider = <S extends State>(
  page: Page<S>,
  label: string,
  key: KeyOf<S, number>,
  options: SliderOptions,
): HTMLElement =>
  sliderOf(
    page,
    label,
    (state) => state[key] as number,
    (value) => ({ [key]: value }) as Partial<S>,
    options,
  );

/** A slider of one entry of a list of the state. */
export const entrySlider = <S extends State>(
  page: Page<S>,
  label: string,
  key: KeyOf<S, number[]>,
  index: number,
  options: SliderOptions,
): HTMLElement =>
  sliderOf(
    page,
    label,
    (state) => (state[key] as number[])[index] ?? 0,
    (value) => {
      const list = [...(page.store.get()[key] as number[])];
      list[index] = value;
      return { [key]: list } as Partial<S>;
    },
    options,
  );

/** Numbers as options of a choice, each its own label. */
export const ownLabels = (values: readonly number[]): [value: number, label: string][] =>
  values.map((value) => [value, String(value)]);

/** A choice among `options`, value and label each. */
export function choice<S extends State>(
  page: Page<S>,
  label: string,
  key: KeyOf<S, string> | KeyOf<S, number>,
  options: [value: string | number, label: string][],
): HTMLElement {
  const id = newId();
  const input = el("select", { id }, ...options.map(([value, text]) => el("option", { value }, text)));
  input.addEventListener("change", () => {
    const value = options[input.selectedIndex]?.[0];
    page.store.commit({ [key]: value } as unknown as Partial<S>);
  });
  page.onChange((state) => (input.value = String(state[key])));
  return el("div", { class: "control" }, el("label", { for: id }, label), input);
}

/** A switch of the state. */
export function toggle<S extends State>(page: Page<S>, label: string, key: KeyOf<S, boolean>): HTMLElement {
  const id = newId();
  const input = el("input", { id, type: "checkbox", role: "switch" });
  input.addEventListener("change", () => page.store.commit({ [key]: input.checked } as unknown as Partial<S>));
  page.onChange((state) => (input.checked = state[key] as boolean));
  return el("div", { class: "control toggle" }, input, el("label", { for: id }, label));
}

/** Controls in a row that wraps, named for screen readers. */
export const controls = (name: string, ...parts: HTMLElement[]): HTMLElement =>
  el("div", { class: "panel", role: "group", "aria-label": name }, ...parts);

export { button };
