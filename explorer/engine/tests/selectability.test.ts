import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../client";
import { attentionFigure, attentionWeights, randomTableFigure, randomTableRow, selectKeys } from "../selectability";
import { coreEngine } from "./core";

let engine: Engine;
beforeAll(async () => {
  engine = await coreEngine();
});

const none = { project: false, scale: false };
const square = [0, 0, 1, 1, 1, 0, 0, 1, 0.5, 0.25];

describe("selectKeys", () => {
  it("proves the corners of a square by queries and its inside by weights", async () => {
    const { verdicts, faces, keys } = await selectKeys(engine, square, 2, none);
    expect([...keys]).toEqual(square);
    expect(verdicts.map(({ answer }) => answer)).toEqual([...Array(4).fill("selectable"), "unselectable"]);
    expect(verdicts.every(({ verified }) => verified)).toBe(true);
    expect(faces.map((face) => [...face])).toEqual([[0, 2, 1, 3]]);
    const inside = verdicts[4]!;
    expect(inside.residual).toBeLessThanOrEqual(1e-12);
    expect([...inside.shares].reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 12);
    const combined = [0, 1].map((c) =>
      inside.others.reduce((sum, other, i) => sum + inside.shares[i]! * square[2 * other + c]!, 0),
    );
    expect(combined[0]).toBeCloseTo(0.5, 12);
    expect(combined[1]).toBeCloseTo(0.25, 12);
    for (const { query, margin } of verdicts.slice(0, 4)) {
      expect(query.length).toBe(2);
      expect(margin).toBeGreaterThan(0.5);
    }
  });

  it("loses no key that a norm has scaled, and ties what two numbers make one", async () => {
    const spread = [0.1, 0.2, 0.9, 2, 0.3, -1, 0.2, 0.2, 0.5, 1, -0.4, 0.1];
    const scaled = await selectKeys(engine, spread, 3, { project: true, scale: true });
    expect(scaled.verdicts.every(({ answer }) => answer === "selectable")).toBe(true);
    expect(Math.hypot(...scaled.keys.subarray(0, 3))).toBeCloseTo(Math.sqrt(3), 12);
    const two = await selectKeys(engine, square, 2, { project: true, scale: true });
    expect(two.verdicts.map(({ proof }) => proof)).toEqual(["twin", "twin", "twin", "own_direction", "twin"]);
  });

  it("says what is wrong with keys", async () => {
    await expect(selectKeys(engine, [1, 2, 3], 2, none)).rejects.toThrow("whole rows");
    await expect(selectKeys(engine, [1, NaN], 2, none)).rejects.toThrow("finite");
  });
});

describe("attention", () => {
  it("is the softmax that the core's own test has", async () => {
    const weights = await attentionWeights(engine, [0, 0, 1, 0, 0, 2], 2, [Math.log(2), 0]);
    [0.25, 0.5, 0.25].forEach((weight, i) => expect(weights[i]).toBeCloseTo(weight, 15));
    const figure = await attentionFigure(engine, [0, 0, 1, 0, 0, 2], 2, [0, 0]);
    expect((figure["data"] as { name: string }).name).toBe("weights");
  });
});

describe("randomTable", () => {
  it("has the same row for the same seed, and no loss behind LayerNorm", async () => {
    const table = { runs: 20, seed: 1, norm: false };
    const row = await randomTableRow(engine, table, 12);
    expect(row.length).toBe(4 * 13);
    expect([...(await randomTableRow(engine, table, 12))]).toEqual([...row]);
    expect(row[2]).toBeGreaterThan(0.7);
    const normed = await randomTableRow(engine, { ...table, norm: true }, 12);
    expect(normed.filter((_, i) => i % 4 >= 2).every((share) => share === 0)).toBe(true);
    const figure = await randomTableFigure(engine, table, [...row], false, "any");
    expect((figure["data"] as { values: object[] }).values.length).toBe(13);
  });
});
