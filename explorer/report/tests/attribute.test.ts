// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { Attribute } from "../../generated/attribute";
import { componentTables, wrongSigns } from "../src/attribute";

/** A result of two components. */
const result = (more: object = {}): Attribute =>
  ({
    components: [
      { name: "embedding", share: 1, frozen: -1, price: 0.25, exact: -0.75, gradient: -0.5, remainder: 1, rerun: null },
      { name: "0.mlp", share: 2, frozen: -2, price: -0.5, exact: -2.5, gradient: -1, remainder: 2, rerun: -3 },
    ].map((component, k) => ({
      ...component,
      rules: { gradient_input: 0.125, half_rule: 0.375 },
      paths: k === 1 ? -1.5 : null,
      anywhere: null,
      ...more,
    })),
    circuit: null,
  }) as unknown as Attribute;

const text = (result: Attribute): string[][] =>
  componentTables(result).map((table) => [...table.querySelectorAll("th, td")].map((cell) => cell.textContent ?? ""));

test("the component of the largest exact change is first, with what other rules say", () => {
  const [effects = [], rules = []] = text(result());
  expect(effects[8]).toBe("0.mlp");
  expect(rules).toEqual([
    ...["Component", "Share", "Gradient × input", "Half rule", "Sum over paths", "Run again"],
    ...["0.mlp", "2.00", "0.125", "0.375", "−1.50", "−3.00"],
    ...["embedding", "1.00", "0.125", "0.375", "–", "–"],
  ]);
});

test("bounds over all contexts are columns where they were asked for, rounded outwards", () => {
  const [, rules = []] = text(result({ anywhere: { least: -0.12345, most: 4.5678 } }));
  expect(rules.slice(6, 8)).toEqual(["Least share ever", "Most ever"]);
  expect(rules.slice(14, 16)).toEqual(["−0.124", "4.57"]);
});

test("a circuit of which an estimate has the wrong sign says so", () => {
  const circuit = (frozen: number, gradient: number) =>
    wrongSigns({ ...result(), circuit: { exact: -2, frozen, gradient, kept: [] } } as unknown as Attribute);
  expect(circuit(-1, -1)).toBe("");
  expect(circuit(-1, 1)).toContain("By the gradient");
  expect(circuit(1, -1)).toContain("Frozen, the logit");
  expect(circuit(1, 1)).toContain("Frozen and by the gradient");
  expect(wrongSigns(result())).toBe("");
});
