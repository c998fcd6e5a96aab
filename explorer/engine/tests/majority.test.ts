import { describe, expect, it } from "vitest";
import { MajorityTraining } from "../majority";
import { coreEngine } from "./core";

describe("MajorityTraining", () => {
  it("learns the same from the same seed, of keys on the norm's sphere", async () => {
    const engine = await coreEngine();
    const spec = { width: 3, project: true, squaredLength: 3 } as const;
    const training = await MajorityTraining.start(engine, spec, 1);
    const before = await training.look();
    const after = await training.advance(60);
    expect(after.step).toBe(60);
    expect(after.loss).toBeLessThan(before.loss - 0.5);
    expect(Math.hypot(...after.keys.subarray(0, 3))).toBeCloseTo(Math.sqrt(3), 12);
    expect(after.keys.subarray(0, 3).reduce((sum, value) => sum + value, 0)).toBeCloseTo(0, 12);
    expect(after.queries.length).toBe(30);
    expect(training.example.reduce((sum, count) => sum + count, 0)).toBe(30);
    expect(after.attention.reduce((sum, part) => sum + part, 0)).toBeCloseTo(1, 12);
    const again = await MajorityTraining.start(engine, spec, 1);
    expect((await again.advance(60)).loss).toBe(after.loss);
    const short = await MajorityTraining.start(engine, { width: 8, project: false, squaredLength: 1 / 8 }, 1);
    expect(Math.hypot(...(await short.look()).keys.subarray(0, 8))).toBeCloseTo(Math.sqrt(1 / 8), 12);
  });
});
