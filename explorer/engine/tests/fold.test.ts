import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../client";
import { curve, facts, move, share, surface } from "../fold";
import type { Move } from "../fold";
import { coreEngine } from "./core";

let engine: Engine;
beforeAll(async () => {
  engine = await coreEngine();
});

describe("stretch and fold", () => {
  it("have the numbers of the C++ tests (Circle), to 1e-12 of their digits", async () => {
    expect(await share(engine, 5, 0.9)).toBeCloseTo(0.7507, 4);
    const found = await facts(engine, 2);
    expect(found.winding).toBe(0);
    expect(found.speed).toBe(1);
    expect(found.minimum).toBeCloseTo(Math.sqrt(0.75), 12);
    expect((await facts(engine, 0.99)).winding).toBe(1);
    expect((await facts(engine, 1)).winding).toBeNull();
    expect((await facts(engine, 0.5)).minimum).toBeNull();
  });

  it("land where the curves and the surface say", async () => {
    const angles = [0.1, 1, 2, 3, 4.5];
    const points = new Float64Array(angles.flatMap((angle) => [Math.cos(angle), Math.sin(angle)]));
    const xs = new Float64Array(angles.map(Math.cos));
    for (const name of ["stretch", "shift"] as Move[]) {
      const { moved, landed } = await move(engine, name, 1.7, 0.1, points);
      const line = await curve(engine, name, 1.7, 0.1, xs);
      const heights = await surface(engine, 0.1, moved);
      angles.forEach((_, i) => {
        expect(landed[2 * i]).toBeCloseTo(line[i]!, 12);
        expect(landed[2 * i]).toBeCloseTo(heights[i]!, 12);
      });
    }
    await expect(move(engine, "twist" as Move, 1, 0, points)).rejects.toThrow("no move twist");
  });
});
