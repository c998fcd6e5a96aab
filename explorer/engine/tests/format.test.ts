import { expect, test } from "vitest";
import { atLeast, atMost } from "../../shared/format";

/** Parses a number that the page has formatted. */
function read(text: string): number {
  const exponent = (power: string) =>
    [...power].map((sign) => (sign === "⁻" ? "-" : String("⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(sign)))).join("");
  return Number(
    text
      .replace("\u2212", "-")
      .replace(/^(-?)10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)$/, (_, sign, power) => `${sign}1e${exponent(power)}`)
      .replace(/·10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)$/, (_, power) => `e${exponent(power)}`),
  );
}

test("ends of bounds are rounded outward", () => {
  let state = 1;
  const uniform = () => (state = (state * 48271) % 2147483647) / 2147483647;
  for (let i = 0; i < 5000; i += 1) {
    const value = (uniform() - 0.5) * 10 ** (24 * uniform() - 12);
    expect(read(atMost(value))).toBeGreaterThanOrEqual(value);
    expect(read(atLeast(value))).toBeLessThanOrEqual(value);
  }
});

test("what fits stays", () => {
  for (const text of ["0.123", "99.9", "100", "12345"]) {
    expect(atMost(Number(text))).toBe(text);
    expect(atLeast(Number(text))).toBe(text);
  }
  expect([atMost(1.2301), atLeast(1.2399)]).toEqual(["1.24", "1.23"]);
  expect([atMost(999.1), atLeast(99.99)]).toEqual(["1000", "99.9"]);
});
