import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../client";
import { image, steps } from "../geometry";
import type { NormSpec } from "../geometry";
import { coreEngine } from "./core";

let engine: Engine;
beforeAll(async () => {
  engine = await coreEngine();
});

const spec: NormSpec = { kind: "layer", width: 3, eps: 0, gain: [1, 2, 3], bias: [0, 0, 1] };

describe("geometry", () => {
  it("has the semi-axes sqrt(3 zeta) of the two roots zeta = 7 and 7/3", async () => {
    const found = await image(engine, spec);
    expect(found.semiAxes[0]).toBeCloseTo(Math.sqrt(21), 12);
    expect(found.semiAxes[1]).toBeCloseTo(Math.sqrt(7), 12);
    expect(found.condition).toBeCloseTo(Math.sqrt(3), 12);
  });

  it("gives steps that end in the norm's definition", async () => {
    const x = [1, 2, 4];
    const [, , , last] = await steps(engine, spec, new Float64Array(x));
    const mean = 7 / 3;
    const deviation = Math.sqrt(x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / 3);
    x.forEach((value, i) =>
      expect(last?.[i]).toBeCloseTo((spec.gain![i]! * (value - mean)) / deviation + spec.bias![i]!, 12),
    );
  });

  it("says what is wrong with a norm", async () => {
    await expect(image(engine, { ...spec, eps: -1 })).rejects.toThrow("eps is -1, expected a finite number >= 0");
    await expect(image(engine, { ...spec, gain: [1] })).rejects.toThrow("gain");
  });
});
