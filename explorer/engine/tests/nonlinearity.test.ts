import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../client";
import { classRatios, foldedPlaces, foldOnce, groupCurvature, mergePoints, randomLabels } from "../nonlinearity";
import type { Mode } from "../nonlinearity";
import { coreEngine } from "./core";

let engine: Engine;
beforeAll(async () => {
  engine = await coreEngine();
});

const xor = [0, 0, 1, 1, 0, 1, 1, 0];
const classes = [0, 0, 1, 1];

describe("one layer", () => {
  it("breaks what no linear map can: XOR, with the numbers of Scatter.OneLayerNormBreaksExclusiveOr", async () => {
    const before = await classRatios(engine, xor, 2, classes);
    expect([before.ssr, before.lssr]).toEqual([1, 1]);
    const { linear, neurons, circle, curvature } = await foldOnce(engine, xor, [1, 1], 1, 1);
    expect((await classRatios(engine, linear, 3, classes)).lssr).toBeGreaterThanOrEqual(1 - 1e-12);
    const behind = await classRatios(engine, neurons, 3, classes);
    expect(behind.lssr).toBeCloseTo(0, 12);
    expect(behind.ssr).toBeCloseTo(0.921, 3);
    [-Math.SQRT1_2, Math.SQRT1_2, Math.SQRT1_2, Math.SQRT1_2, 0, 1, 0, 1].forEach((value, i) =>
      expect(circle[i]).toBeCloseTo(value, 14),
    );
    // 1/σ⁴ of the three neurons, which is largest where the line is folded.
    curvature.forEach((value, i) => {
      const row = linear.subarray(3 * i, 3 * i + 3);
      const mean = row.reduce((sum, one) => sum + one / 3, 0);
      expect(value * row.reduce((sum, one) => sum + (one - mean) ** 2 / 3, 0) ** 2).toBeCloseTo(1, 9);
    });
    const [side = 0, other = 0, fold = 0] = (await foldOnce(engine, [0, 0, 1, 1, 0.5, 0.5], [1, 1], 1, 1)).curvature;
    expect(fold).toBeGreaterThan(Math.max(side, other));
  });
});

describe("Projection Merge", () => {
  const points = [0.1, 0.9, -1.2, 0.3, 0.8, -0.4, 1.9, 1.1, -0.6, -1.5, 0.5, 0.2, -1.8, 1.4, 1.2, -1.1];
  it.each<Mode>(["paper", "stable"])("gives every point its label, fold by fold, in %s mode", async (mode) => {
    const labels = await randomLabels(engine, 8, 2, 5);
    const merged = await mergePoints(engine, points, labels, mode, 1);
    expect(merged.correct).toBe(8);
    expect(merged.folds.length).toBeGreaterThan(1);
    expect(merged.folds.at(-1)?.runs).toBe(2);
    expect(merged.places.length).toBe(8 * (merged.folds.length + 1));
    expect(merged.neurons.length).toBe(24 * merged.folds.length);
    const first = await foldedPlaces(engine, mode, merged.folds[0]!, merged.places.subarray(0, 8));
    first.forEach((place, i) => expect(place / merged.places[8 + i]!).toBeCloseTo(1, 9));
  });
});

describe("curvature", () => {
  it("of groups stays above its bound g(N - 2g)/(N - 2)", async () => {
    const { groups, figure } = await groupCurvature(engine, { kind: "layer", width: 64, eps: 0 }, 50, 1);
    expect(groups.map((entry) => entry.groups)).toEqual([1, 2, 4, 8, 16]);
    for (const entry of groups) {
      expect(entry.bound).toBeCloseTo((entry.groups * (64 - 2 * entry.groups)) / 62, 12);
      expect(entry.least).toBeGreaterThanOrEqual(entry.bound! * (1 - 1e-12));
    }
    expect((figure["data"] as { values: object[] }).values.length).toBe(15);
  });
});
