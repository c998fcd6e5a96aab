import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../client";
import { centred, features, pack, pixels, readIdx, shrink, side, unpack } from "../digits";
import type { Images } from "../digits";
import { Training } from "../playground";
import { coreEngine, smallNet } from "./core";

const idx = (extents: number[], data: number[]): Uint8Array =>
  new Uint8Array([0, 0, 8, extents.length, ...extents.flatMap((extent) => [0, 0, extent >> 8, extent & 255]), ...data]);
const images = (count: number, pixel: (image: number, row: number, column: number) => number) =>
  idx(
    [count, 28, 28],
    Array.from({ length: count * 784 }, (_, i) => pixel(Math.floor(i / 784), Math.floor((i % 784) / 28), i % 28)),
  );

describe("digits", () => {
  it("are shrunk by four pixels to one", () => {
    const found = shrink(
      images(2, (image, row, column) => (image === 1 && row < 2 && column < 1 ? 255 : 0)),
      idx([2], [7, 3]),
      2,
      "MNIST",
    );
    expect([...found.labels]).toEqual([7, 3]);
    expect(found.shades.length).toBe(2 * pixels);
    expect(found.shades[pixels]).toBeCloseTo(0.5, 12);
    expect(found.shades.reduce((sum, shade) => sum + shade, 0)).toBeCloseTo(0.5, 12);
  });

  it("are packed and unpacked", () => {
    const some = (count: number, first: number): Images => ({
      labels: Int32Array.from({ length: count }, (_, i) => (first + i) % 10),
      shades: Float64Array.from({ length: count * pixels }, (_, i) => ((first + 7 * i) % 16) / 15),
    });
    const [learned, held] = [some(5, 1), some(3, 4)];
    expect(unpack(pack({ learned, held }))).toEqual({ learned, held });
    expect(() => unpack(new Uint8Array(7))).toThrow("damaged");
    expect(() => unpack(pack({ learned, held }).subarray(1))).toThrow("damaged");
  });

  it("are refused in words", () => {
    const blank = images(1, () => 0);
    expect(() => readIdx(new Uint8Array(20), "it")).toThrow("it is no IDX file of bytes");
    expect(() => readIdx(idx([3], [1, 2]), "it")).toThrow("it has 2 bytes of data, expected 3");
    expect(() => shrink(idx([1, 2, 2], [1, 2, 3, 4]), idx([1], [1]), 1, "it")).toThrow("are of 2 × 2 pixels");
    expect(() => shrink(blank, idx([2], [1, 2]), 1, "it")).toThrow("2 labels for 1 images");
    expect(() => shrink(blank, idx([1], [1]), 2, "it")).toThrow("has 1 images, expected at least 2");
    expect(() => shrink(blank, idx([1], [12]), 1, "it")).toThrow("not all digits");
  });

  it("drawn in a corner come to the middle", () => {
    const drawn = new Float64Array(pixels);
    drawn[0] = drawn[1] = drawn[side] = drawn[side + 1] = 1;
    const moved = centred(drawn);
    expect(moved.reduce((sum, shade) => sum + shade, 0)).toBe(4);
    expect(moved[6 * side + 6]).toBe(1);
    expect(centred(moved)).toEqual(moved);
    expect(centred(new Float64Array(pixels))).toEqual(new Float64Array(pixels));
  });

  describe("in a net", () => {
    let engine: Engine;
    beforeAll(async () => {
      engine = await coreEngine();
    });

    it("are learned by three neurons with a norm", async () => {
      // Bars at places of their own stand for the digits.
      const bars = (count: number, shift: number): Images => ({
        labels: Int32Array.from({ length: count }, (_, i) => i % 5),
        shades: Float64Array.from({ length: count * pixels }, (_, i) => {
          const [image, column] = [Math.floor(i / pixels), i % side];
          return Math.abs(column - 2 - 2 * (image % 5)) < 1 + ((image + shift) % 2) ? 1 : 0;
        }),
      });
      const [learned, held] = [bars(60, 0), bars(40, 1)];
      const spec = { ...smallNet, steps: 300, batch: 20 };
      const training = await Training.start(engine, spec, {
        ...{ width: pixels, x: features(learned.shades), labels: learned.labels },
        held: { x: features(held.shades), labels: held.labels },
      });
      await training.advance(300);
      const { accuracy, held: fresh } = await training.score(300);
      expect(accuracy).toBeGreaterThan(0.9);
      expect(fresh).toBeGreaterThan(0.9);
      const shares = await training.probabilities(features(held.shades.subarray(0, pixels)), 300);
      expect(shares.length).toBe(5);
    });
  });
});
