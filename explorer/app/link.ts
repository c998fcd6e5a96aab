import { number } from "../shared/format";

/** The state of a chapter's figure: flat, so that it fits into a link. */
export type Value = number | boolean | string | number[];
export type State = Record<string, Value>;

/** What a value of the state has to be; `expected` says it to the reader of a link that breaks it. */
export interface Rule<S extends State = State> {
  allows(value: Value, state: S): boolean;
  expected: string;
}

/** A rule for every value of the state but the switches, which are on or off. */
export type Rules<S extends State> = { [K in keyof S as S[K] extends boolean ? never : K]: Rule<S> };

export interface Bounds {
  min: number;
  max: number;
}

const inside = (value: Value, { min, max }: Bounds): value is number =>
  typeof value === "number" && min <= value && value <= max;

export const between = (bounds: Bounds): Rule => ({
  allows: (value) => inside(value, bounds),
  expected: `a number from ${number(bounds.min)} to ${number(bounds.max)}`,
});

export const whole = (bounds: Bounds): Rule => ({
  allows: (value) => inside(value, bounds) && Number.isInteger(value),
  expected: `a whole number from ${number(bounds.min)} to ${number(bounds.max)}`,
});

export const seed = whole({ min: 0, max: 1e9 });

export const oneOf = (values: readonly (string | number)[]): Rule => ({
  allows: (value) => values.includes(value as string | number),
  expected: `one of ${values.join(", ")}`,
});

export const matching = (pattern: RegExp, expected: string): Rule => ({
  allows: (value) => typeof value === "string" && pattern.test(value),
  expected,
});

/** A list of numbers that each follow `rule`, `allowed` by their count. */
export const listOf = <S extends State>(
  rule: Rule,
  allowed: (count: number, state: S) => boolean,
  expected: string,
): Rule<S> => ({
  allows: (value, state) =>
    Array.isArray(value) && allowed(value.length, state) && value.every((entry) => rule.allows(entry, state)),
  expected: `${expected}, each ${rule.expected}`,
});

const write = (value: Value): string =>
  Array.isArray(value) ? value.map(String).join(",") : typeof value === "boolean" ? (value ? "1" : "0") : String(value);

function read(text: string, like: Value): Value | undefined {
  if (typeof like === "boolean") return text === "1" ? true : text === "0" ? false : undefined;
  if (typeof like === "string") return text;
  const numeral = (part: string) => (part.trim() === "" ? NaN : Number(part));
  if (typeof like === "number") return Number.isFinite(numeral(text)) ? Number(text) : undefined;
  const numbers = text === "" ? [] : text.split(",").map(numeral);
  return numbers.every(Number.isFinite) ? numbers : undefined;
}

/** The part of `state` that differs from `defaults`, as a link's query. */
export function toQuery<S extends State>(state: S, defaults: S): string {
  const query = new URLSearchParams();
  for (const key of Object.keys(defaults)) {
    const text = write(state[key] as Value);
    if (text !== write(defaults[key] as Value)) query.set(key, text);
  }
  return query.toString();
}

const longest = 60;
const quoted = (text: string): string => (text.length > longest ? `${text.slice(0, longest)}…` : text);

/**
 * The state of a link, `defaults` with the values that its query gives, and what is wrong with them, a line each. A
 * link with a problem has the state of the defaults: its other values were chosen to go with the one that is wrong.
 */
export function fromQuery<S extends State>(
  query: string,
  defaults: S,
  rules: Rules<S>,
): { state: S; problems: string[] } {
  const state: State = { ...defaults };
  const expected = new Map<string, string>();
  const texts = new Map(new URLSearchParams(query));
  for (const [key, text] of texts) {
    const like = Object.hasOwn(defaults, key) ? defaults[key] : undefined;
    const value = like === undefined ? undefined : read(text, like);
    if (value !== undefined) state[key] = value;
    else if (like === undefined) expected.set(key, `no such value, expected ${Object.keys(defaults).join(", ")}`);
    else expected.set(key, `expected ${(rules as Rules<State>)[key]?.expected ?? "0 or 1"}`);
  }
  for (const [key, rule] of Object.entries(rules as Rules<State>)) {
    if (!expected.has(key) && !rule.allows(state[key] as Value, state)) expected.set(key, `expected ${rule.expected}`);
  }
  const problems = [...expected].map(
    ([key, what]) => `${key}=${quoted(texts.get(key) ?? write(state[key] as Value))}: ${what}`,
  );
  return problems.length === 0 ? { state: state as S, problems } : { state: defaults, problems };
}
