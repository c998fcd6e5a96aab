// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { Norm } from "../../generated/report";
import { cell, classes, columnsFor, compare } from "../src/norm_columns";

/** A norm of which a report knows little. */
const norm = (index: number, more: Partial<Norm> = {}): Norm =>
  ({
    index,
    name: `norm ${index}`,
    kind: "layer",
    width: 16,
    eps: 1e-5,
    outlier_count: 0,
    gain: null,
    image: null,
    null_space: null,
    ...more,
  }) as unknown as Norm;
const gain = (max: number) => ({ min: 0.5, max }) as Norm["gain"];
const column = (norms: Norm[], head: string) => columnsFor(norms).shown.find(({ title }) => title === head)!;

test("what all norms have in common is said once and has no column", () => {
  const norms = [norm(0), norm(1)];
  expect(columnsFor(norms).common.join("; ")).toContain("ε = 10⁻⁵");
  expect(column(norms, "ε")).toBeUndefined();
  expect(column([norm(0), norm(1, { eps: 1e-6 })], "ε")).toBeDefined();
  expect(columnsFor([norm(0)]).common).toEqual([]);
});

test("a column that may be missing is there once a norm has its value", () => {
  const centred = norm(1, { null_space: { cosine_to_ones: 1 } } as Partial<Norm>);
  expect(column([norm(0)], "cos to 1")).toBeUndefined();
  expect(column([norm(0), centred], "cos to 1")).toBeDefined();
});

test("norms are ordered by a column, the unknown last in both directions and equal ones as they come", () => {
  const norms = [norm(0, { gain: gain(3) }), norm(1), norm(2, { gain: gain(1) }), norm(3, { gain: gain(3) }), norm(4)];
  const largest = column(norms, "Gain max");
  const order = (direction: 1 | -1) =>
    [...norms].sort((a, b) => compare(largest, a, b, direction)).map(({ index }) => index);
  expect(order(1)).toEqual([2, 0, 3, 1, 4]);
  expect(order(-1)).toEqual([0, 3, 2, 1, 4]);
  expect(classes(largest)).toBe("number");
  expect(cell(largest, norm(1))).toBe("–");
});
