import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../client";
import { ellipse, outputs, places, verify } from "../signature";
import type { Precision, SmallModel } from "../signature";
import { coreEngine } from "./core";

const model = (gain: number[]): SmallModel => ({
  norm: { kind: "layer", width: 3, eps: 0, gain },
  unembedding: [1.2, 0.3, -0.5, -0.4, 0.9, 0.7, 0.1, -1, 0.6],
  bias: [0.1, 0, -0.1],
});
const gain = [1, 1.8, 0.6];

describe("outputs of three tokens", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await coreEngine();
  });

  it("are consistent with their own model in every precision, and lie on its ellipse", async () => {
    for (const precision of ["float32", "float16", "bfloat16"] as Precision[]) {
      const logits = await outputs(engine, model(gain), precision, 40, 3);
      const rows = await verify(engine, model(gain), logits, precision);
      expect(rows.map(({ verdict }) => verdict)).toEqual(Array(40).fill("consistent"));
      rows.forEach(({ units }) => expect(Math.abs(units)).toBeLessThan(8));
    }
    const logits = await outputs(engine, model(gain), "float32", 40, 3);
    const curve = await ellipse(engine, model(gain), 4000);
    const at = await places(engine, logits);
    for (let i = 0; i < 80; i += 2) {
      let nearest = Infinity;
      for (let k = 0; k < curve.length; k += 2)
        nearest = Math.min(nearest, Math.hypot(at[i]! - curve[k]!, at[i + 1]! - curve[k + 1]!));
      expect(nearest).toBeLessThan(3e-3);
    }
  });

  it("keep their distances in the plane", async () => {
    const [x, y] = await places(engine, new Float64Array([2, -1, 5]));
    // Without the mean, 2: (0, −3, 3).
    expect(Math.hypot(x!, y!)).toBeCloseTo(Math.hypot(0, -3, 3), 12);
    expect(x).toBeCloseTo(3 / Math.SQRT2, 12);
  });

  it("are told from those of a gain that is 1 % larger in float32, and not in bfloat16", async () => {
    const other = model([1, 1.818, 0.6]);
    const fine = await verify(engine, other, await outputs(engine, model(gain), "float32", 40, 3), "float32");
    expect(fine.every(({ verdict }) => verdict === "not this model")).toBe(true);
    const back = await verify(engine, model(gain), await outputs(engine, other, "float32", 40, 3), "float32");
    // The larger ellipse is outside of the smaller nearly everywhere, which can be proved; the other way round there is no
    // proof.
    expect(back.filter(({ proved }) => proved).length).toBeGreaterThan(30);
    expect(fine.filter(({ proved }) => proved).length).toBeLessThan(5);
    const coarse = await verify(engine, other, await outputs(engine, model(gain), "bfloat16", 40, 3), "bfloat16");
    expect(coarse.every(({ verdict }) => verdict === "not this model")).toBe(false);
  });

  it("are refused in one line where they are no outputs", async () => {
    await expect(outputs(engine, model([1, 2]), "float32", 4, 1)).rejects.toThrow("gain");
    await expect(outputs(engine, model(gain), "int8" as Precision, 4, 1)).rejects.toThrow("there is no precision int8");
    await expect(verify(engine, model(gain), new Float64Array([1, 1, 1]), "float32")).rejects.toThrow(
      "row 0 is constant",
    );
  });
});
