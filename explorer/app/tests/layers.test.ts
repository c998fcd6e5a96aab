// @vitest-environment happy-dom
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { mean, runsIn, sharesAt } from "../chapters/selectability_layers";

it("the shares of keys lost by layer are those of the page of results", () => {
  const read = (file: string) => readFileSync(resolve("../docs/results", file), "utf8");
  const runs = runsIn(read("runs/brody-language-model.jsonl"));
  const inWords = (metric: "lost" | "lost_before", scales: boolean) =>
    [1, 2, 3, 4].map((layer) => (100 * mean(sharesAt(runs, { metric, scales }, layer, 20000))).toFixed(1)).join(", ");
  expect(inWords("lost", false)).toBe("27.2, 25.2, 32.2, 42.2");
  for (const words of [inWords("lost", false), inWords("lost_before", true), inWords("lost", true)])
    expect(read("brody.md")).toContain(`| ${words} % in layers 1 to 4`);
});
