import { expect, test, vi } from "vitest";
import type { Chart } from "../../generated/charts";
import type { Report } from "../../generated/report";
import { pairedCharts } from "../src/pair";
import { lastPart } from "../src/pages";
import { countHeads } from "../src/spreads";

// What draws is not needed.
vi.mock("../src/charts", () => ({ showCharts: () => ({ redraw: () => {} }) }));

const chart = (id: string, panel?: string): Chart =>
  ({ id, panel, question: id, answer: "", description: "", spec: {} }) as Chart;
const side = (name: string, ...charts: Chart[]) => ({ report: { model: { name } } as Report, charts });

test("figures of two reports stand in pairs, and those of one alone keep their place", () => {
  const paired = pairedCharts([
    side("one", chart("gains", "attention"), chart("first only")),
    side("other", chart("second only"), chart("gains", "attention")),
  ]);
  expect(paired.map(({ id }) => id)).toEqual(["gains-1", "gains-2", "first only-1", "second only-2"]);
  expect(paired.map(({ panel }) => panel)).toEqual(["1: one, attention", "2: other, attention", "1: one", "2: other"]);
});

test("a model is called as the last part of its path", () => {
  expect(["models/gpt2/", "gpt2", "a/b.safetensors", "/"].map(lastPart)).toEqual(["gpt2", "gpt2", "b.safetensors", ""]);
});

test("a head that reads several norms counts once", () => {
  const head = (layer: number, head: number, pass: number, stack?: string) => ({ layer, head, pass, stack });
  const heads = [head(0, 0, 0), head(0, 0, 1), head(0, 1, 0), head(0, 0, 0, "decoder")];
  expect(countHeads(heads as unknown as Parameters<typeof countHeads>[0])).toBe(3);
});
