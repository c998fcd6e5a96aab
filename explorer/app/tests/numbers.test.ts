// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { boundInText, entryInText, numberInText } from "../numbers";
import { pageOf } from "./page";

const page = () =>
  pageOf(
    { eps: 1e-4, n: 60, gain: [1, 1.8] },
    '<p><b data-number="eps"></b> <b data-number="n"></b> <b data-number="gain-2"></b></p>',
  );
const shown = (name: string) => document.querySelector<HTMLElement>(`[data-number="${name}"]`)!;
const press = (name: string, key: string, more: KeyboardEventInit = {}) => {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  shown(name).dispatchEvent(event);
  return event.defaultPrevented;
};

test("a number of the text is a slider that keys move inside its bounds", () => {
  const { store, ...rest } = page();
  numberInText({ store, ...rest }, "n", "n", { min: 1, max: 70, step: 1 });
  const number = shown("n");
  expect(
    ["role", "aria-label", "aria-valuemin", "aria-valuemax", "aria-valuenow"].map((key) => number.getAttribute(key)),
  ).toEqual(["slider", "n", "1", "70", "60"]);
  press("n", "ArrowRight");
  expect([store.get().n, number.textContent, number.getAttribute("aria-valuetext")]).toEqual([61, "61", "61"]);
  press("n", "ArrowLeft", { shiftKey: true });
  expect(store.get().n).toBe(51);
  for (const [key, n] of [
    ["End", 70],
    ["ArrowUp", 70],
    ["Home", 1],
    ["PageDown", 1],
    ["PageUp", 11],
  ] as const) {
    press("n", key);
    expect(store.get().n).toBe(n);
  }
  expect(press("n", "a")).toBe(false);
  expect(press("n", "ArrowRight", { ctrlKey: true })).toBe(false);
  store.undo();
  expect(store.get().n).toBe(1);
});

test("steps of a logarithmic number are even in its exponent and add up to where they began", () => {
  const parts = page();
  numberInText(parts, "eps", "eps", { min: 1e-8, max: 10, step: 0.1, log: true });
  press("eps", "ArrowRight");
  expect(parts.store.get().eps).toBe(1.26e-4);
  for (let i = 0; i < 9; ++i) press("eps", "ArrowRight");
  expect(parts.store.get().eps).toBe(1e-3);
  expect(shown("eps").getAttribute("aria-valuemin")).toBe("0.00000001");
});

test("an entry of a list moves alone", () => {
  const parts = page();
  entryInText(parts, "gain 2", "gain", 1, { min: -3, max: 3, step: 0.05 });
  press("gain-2", "ArrowLeft");
  expect(parts.store.get().gain).toEqual([1, 1.75]);
});

test("a number may be bound to anything, and only to what the text has", () => {
  const parts = page();
  const values = [1, 10, 100];
  boundInText(parts, "n", "n", { read: ({ n }) => n, write: (n) => ({ n }) }, { values });
  press("n", "ArrowRight");
  expect(parts.store.get().n).toBe(100);
  expect(() => numberInText(pageOf({ n: 1 }), "n", "n", { min: 0, max: 1, step: 1 })).toThrow("no number n");
});
