import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../client";
import { centers, curvesFigure, onMap, onSphere, readPoints, samples, tasks, Training } from "../playground";
import { coreEngine, smallNet as spec } from "./core";

let engine: Engine;
beforeAll(async () => {
  engine = await coreEngine();
});

const data = { task: "spiral", rows: 40, seed: 1 };

describe("Training", () => {
  it("gives the losses that the C++ tests have (Recording.HasTheLossesOfTheExplorersTests), to 1e-9", async () => {
    const training = await Training.start(engine, spec, data);
    expect((await training.score(0)).loss).toBeCloseTo(0.6864009840227115, 9);
    await training.advance(50);
    expect((await training.score(50)).loss).toBeCloseTo(0.5043784482308873, 9);
  });

  it("ends where it ends however it is sliced, and knows its past", async () => {
    const whole = await Training.start(engine, spec, data);
    const sliced = await Training.start(engine, spec, data);
    const points = new Float64Array([0.3, 0.2, -0.4, 0.1]);
    await whole.advance(90);
    const then = await whole.answers(points, 90);
    await whole.advance(1000);
    for (let i = 0; i < 20; ++i) await sliced.advance(13);
    expect((await sliced.advance(0)).steps).toBe(200);
    expect(await sliced.score(200)).toEqual(await whole.score(200));
    expect(await whole.answers(points, 90)).toEqual(then);
    const curves = await whole.curves(5);
    expect(curves.step.length).toBeLessThanOrEqual(6);
    expect(curves.step.at(-1)).toBe(190);
  });

  it("answers a grid as it answers the grid's points, and carries points through the layers", async () => {
    const training = await Training.start(engine, spec, data);
    await training.advance(100);
    const grid = { left: -1, right: 1, bottom: -2, top: 2, columns: 5, rows: 7 };
    const places = await centers(engine, grid);
    expect(places.length).toBe(70);
    expect(await training.field(grid, 100)).toEqual(await training.answers(places, 100));
    const { width, states } = await training.states(places, 100);
    expect([width, states.length]).toEqual([3, 3]);
    const weights = await training.weights(100);
    expect(weights.map(({ in: from, out, weight }) => [from, out, weight.length])).toEqual([
      [2, 3, 6],
      [3, 3, 9],
      [3, 2, 6],
    ]);
    expect([...weights[2]!.weight]).toEqual([...(await training.head(100)).weight]);
    for (let i = 0; i < 35; ++i) {
      const [x, y, z] = states[2]!.subarray(3 * i, 3 * i + 3);
      expect(Math.hypot(x!, y!, z!)).toBeCloseTo(1, 2);
    }
    await expect(training.answers(new Float64Array(3), 0)).rejects.toThrow("whole rows");
  });

  it("has its accuracy on samples that are not trained on", async () => {
    const known = await Training.start(engine, spec, data);
    expect((await known.score(0)).held).toBeGreaterThan(0.2);
    const { x, labels } = await samples(engine, data, 8);
    const own = { width: 2, x, labels };
    expect((await (await Training.start(engine, spec, own)).score(0)).held).toBeNull();
    const held = await Training.start(engine, spec, { ...own, held: { x, labels } });
    await held.advance(60);
    const { accuracy, held: same } = await held.score(60);
    expect(same).toBe(accuracy);
  });

  it("adds noise to the samples of a task", async () => {
    const clean = await samples(engine, data, 8);
    const noisy = await samples(engine, { ...data, noise: 0.1 }, 8);
    const squares = clean.x.reduce((sum, value, i) => sum + (value - noisy.x[i]!) ** 2, 0);
    expect(Math.sqrt(squares / clean.x.length)).toBeGreaterThan(0.07);
    expect(Math.sqrt(squares / clean.x.length)).toBeLessThan(0.13);
  });

  it("has the outputs of its layers, and the probabilities of all classes", async () => {
    const training = await Training.start(engine, spec, data);
    const points = new Float64Array([0.3, 0.2, -0.4, 0.1]);
    const { states } = await training.states(points, 0);
    const layers = await training.layers(points, 0);
    expect(layers.width).toBe(3);
    expect(layers.states).toEqual(states.slice(1));
    const { width, states: steps } = await training.steps(points, 0);
    expect([width, steps.length]).toEqual([3, 5]);
    expect(steps.filter((_, i) => i % 2 === 0)).toEqual(states);
    // The norm leaves directions as they are.
    const [linear, normed] = [steps[1]!, steps[2]!].map((rows) => rows.subarray(0, 3)) as [Float32Array, Float32Array];
    const length = Math.hypot(...linear);
    linear.forEach((value, i) => expect(value / length).toBeCloseTo(normed[i]!, 3));
    const shares = await training.probabilities(points, 0);
    const found = await training.answers(points, 0);
    found.classes.forEach((label, row) => expect(shares[2 * row + label]).toBeCloseTo(found.probabilities[row]!, 6));
    expect(shares[0]! + shares[1]!).toBeCloseTo(1, 6);
  });

  it("says what is wrong with a net or with points", async () => {
    await expect(Training.start(engine, { ...spec, groups: 2 }, data)).rejects.toThrow(
      "2 groups do not divide width 3",
    );
    const one = { width: 2, x: [0, 0, 1, 1], labels: [0, 0] };
    await expect(Training.start(engine, spec, one)).rejects.toThrow("1 class, expected at least 2");
    await expect(samples(engine, { task: "squares", rows: 5, seed: 1 }, 10)).rejects.toThrow("squares");
  });
});

describe("pictures of a training", () => {
  it("know the tasks, the sphere's map and the chart", async () => {
    expect((await tasks(engine)).map(({ name }) => name)).toContain("octants");
    const points = new Float64Array([0, 0, 1, 0.6, 0, 0.8]);
    const back = await onSphere(engine, await onMap(engine, points));
    back.forEach((value, i) => expect(value).toBeCloseTo(points[i]!, 14));
    const figure = await curvesFigure(engine, 100, { records: [], transitions: [], now: [{ step: 5 }] });
    expect(JSON.stringify(figure)).toContain('"name":"now"');
  });
});

describe("readPoints", () => {
  it("reads rows with a class, passing over a head", () => {
    const found = readPoints("x;y;kind\n1;2.123456;a\n-3;4e-2;b\n5;6;a\n");
    expect(found).toEqual({ width: 2, x: [1, 2.123, -3, 0.04, 5, 6], labels: [0, 1, 0], names: ["a", "b"] });
    expect(readPoints("1,2,3,0\n4,5,6,1").width).toBe(3);
  });
  it("says which row is wrong", () => {
    expect(() => readPoints("1,2,a\n3,b")).toThrow('row 2 is "3,b", expected 2 numbers and a class');
    expect(() => readPoints("1,a")).toThrow("2 columns");
    expect(() => readPoints("")).toThrow("0 columns");
  });
});
