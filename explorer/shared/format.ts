import type { NormKind } from "../generated/report";

/** A number, or null if it is unknown. */
export type Maybe = number | null;

/** Text for an unknown number. */
export const unknown = "–";

const minus = (text: string): string => text.replace("-", "\u2212");

const superscripts = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const superscript = (exponent: number): string =>
  (exponent < 0 ? "⁻" : "") + [...String(Math.abs(exponent))].map((digit) => superscripts[Number(digit)]).join("");

/** A number with `digits` significant digits: 17.4, −0.0003 as −3·10⁻⁴, – where not known. */
export function number(value: unknown, digits = 3): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return unknown;
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-3 && size < 1e5)) {
    return minus(Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(digits))));
  }
  const [mantissa = "", exponent = "0"] = value.toExponential(digits - 1).split("e");
  const factor = String(Number(mantissa));
  const power = `10${superscript(Number(exponent))}`;
  return minus(factor === "1" ? power : factor === "-1" ? `-${power}` : `${factor}·${power}`);
}

/** A measured number for a column: as `number`, but a zero at its end is kept, 19.0 below 19.4. */
export function measured(value: Maybe): string {
  if (value === null) return unknown;
  const size = Math.abs(value);
  return size >= 1e-3 && size < 999.5 ? minus(value.toPrecision(3)) : number(value);
}

/** `value`, or the next number of three digits (or of its own, for an integer) on that side, up or down. */
function outward(value: number, side: 1 | -1): number {
  if (!Number.isFinite(value) || (Number.isInteger(value) && Math.abs(value) < 1e5)) return value;
  const nearest = Number(value.toPrecision(3));
  if (side * nearest >= side * value) return nearest;
  const [mantissa = "", exponent = "0"] = value.toExponential(2).split("e");
  const digits = Number(mantissa.replace(".", ""));
  // Below a power of ten, numbers of three digits lie ten times as close.
  return Math.abs(digits) === 100 && side * digits < 0
    ? Number(`${10 * digits + side}e${Number(exponent) - 3}`)
    : Number(`${digits + side}e${Number(exponent) - 2}`);
}

/** The upper end of a bound, rounded up, so that the text is a bound too. */
export const atMost = (value: Maybe, show: (value: Maybe) => string = measured): string =>
  show(value === null ? null : outward(value, 1));

/** The lower end of a bound, rounded down. */
export const atLeast = (value: Maybe, show: (value: Maybe) => string = measured): string =>
  show(value === null ? null : outward(value, -1));

/** A share of one as a percentage. */
export const percent = (share: Maybe): string => (share === null ? unknown : `${measured(share * 100)}\u00a0%`);

/** A whole number with its thousands apart: 20 000. */
export function count(value: Maybe): string {
  if (value === null || !Number.isFinite(value)) return unknown;
  return minus(String(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

const scaled = (value: Maybe, units: string[]): string => {
  if (value === null || !Number.isFinite(value)) return unknown;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${Number(value.toPrecision(3))}${units[unit] === "" ? "" : "\u00a0"}${units[unit]}`;
};

/** 498 MB, in powers of ten as disks are sold. */
export const bytes = (value: Maybe): string => scaled(value, ["bytes", "kB", "MB", "GB", "TB"]);

/** 124 million. */
export const large = (value: Maybe): string => scaled(value, ["", "thousand", "million", "billion", "trillion"]);

/** "1 norm", "25 norms", "20 000 heads". */
export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

type KindFacts = { title: string; centers: boolean; divisor: "root_mean_square" | "length" | "nothing" };

/** The kinds of norm: as papers write them, whether the mean is subtracted, and what a block is divided by. */
export const kinds: Record<NormKind, KindFacts> = {
  layer: { title: "LayerNorm", centers: true, divisor: "root_mean_square" },
  rms: { title: "RMSNorm", centers: false, divisor: "root_mean_square" },
  spherical: { title: "spherical norm", centers: false, divisor: "length" },
  dyt: { title: "Dynamic Tanh", centers: false, divisor: "nothing" },
  derf: { title: "Dynamic erf", centers: false, divisor: "nothing" },
};

/** The kinds that normalize: their image is an ellipsoid a group. */
export const normalizingKinds = ["layer", "rms", "spherical"] as const;
export type NormalizingKind = (typeof normalizingKinds)[number];

export const isNormalizingKind = (text: string): text is NormalizingKind =>
  (normalizingKinds as readonly string[]).includes(text);

export const isNormKind = (text: string): text is NormKind => Object.hasOwn(kinds, text);

/** The facts of a kind; undefined for a text that is no kind. */
export const factsOf = (kind: string): KindFacts | undefined => (isNormKind(kind) ? kinds[kind] : undefined);

/** The kind of a norm with its groups; a kind of a later version as the report spells it. */
export const kindName = (kind: string, groups: Maybe): string =>
  kind === "layer" && groups !== null && groups > 1 ? "GroupNorm" : (factsOf(kind)?.title ?? kind);
