import { expect, test } from "vitest";
import { between, fromQuery, listOf, matching, oneOf, seed, toQuery, whole } from "../link";

const defaults = { kind: "layer", gain: [1, 1.8, 0.6], eps: 1e-4, scaled: false, word: "ab", seed: 1 };
const rules = {
  kind: oneOf(["layer", "rms"]),
  gain: listOf(between({ min: -10, max: 10 }), (count) => count === 3, "three numbers"),
  eps: between({ min: 0, max: 1 }),
  word: matching(/^[ab]*$/, "letters a and b"),
  seed,
};
const problemsOf = (query: string) => fromQuery(query, defaults, rules).problems;

test("a link has what differs from the defaults, and gives it back", () => {
  expect(toQuery(defaults, defaults)).toBe("");
  const state = { ...defaults, gain: [0, -1, 2.5], scaled: true, word: "", eps: 1e-9 };
  const query = toQuery(state, defaults);
  expect(new URLSearchParams(query).has("kind")).toBe(false);
  expect(fromQuery(query, defaults, rules)).toEqual({ state, problems: [] });
});

test("a list of no numbers is told from one of nought", () => {
  const free = { ...rules, gain: listOf(between({ min: 0, max: 9 }), () => true, "numbers") };
  for (const gain of [[], [0]]) {
    const state = { ...defaults, gain };
    expect(fromQuery(toQuery(state, defaults), defaults, free).state.gain).toEqual(gain);
  }
});

test("what a link may not say is named, and then nothing of it holds", () => {
  expect(problemsOf("kind=batch")).toEqual(["kind=batch: expected one of layer, rms"]);
  expect(problemsOf("gain=1,2")).toEqual(["gain=1,2: expected three numbers, each a number from −10 to 10"]);
  expect(problemsOf("gain=1,2,x")[0]).toContain("expected three numbers");
  expect(problemsOf("gain=1,2,11")[0]).toContain("expected three numbers");
  for (const eps of ["", "NaN", "Infinity", "1e999", "two", "-0.1"]) expect(problemsOf(`eps=${eps}`)).toHaveLength(1);
  expect(problemsOf("seed=1.5")[0]).toContain("a whole number");
  expect(problemsOf("scaled=yes")).toEqual(["scaled=yes: expected 0 or 1"]);
  expect(problemsOf("word=abc")).toEqual(["word=abc: expected letters a and b"]);
  expect(problemsOf("colour=red")[0]).toContain("no such value, expected kind, gain");
  expect(problemsOf("__proto__=1")[0]).toContain("no such value");
  expect(fromQuery("eps=0.5&kind=batch", defaults, rules).state).toEqual(defaults);
});

test("a refused value is quoted in part only", () => {
  expect(problemsOf(`word=${"c".repeat(5000)}`)[0]!.length).toBeLessThan(120);
});

test("a whole number may be at its bounds", () => {
  const rule = whole({ min: 1, max: 400 });
  expect([0, 1, 400, 401, 2.5].map((value) => rule.allows(value, {}))).toEqual([false, true, true, false, false]);
});
