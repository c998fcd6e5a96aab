import type { Head } from "../../generated/report";
import { button, el } from "../../shared/dom";
import { atLeast, atMost, count, plural, unknown } from "../../shared/format";
import type { Maybe } from "../../shared/format";

/** Rows put on the page; a column head brings the others' extremes to the top. */
const shownRows = 200;
/** Most uniform spreads below this fraction of the sharpest are shown as zero. */
const nothing = 1e-8;
/** Bounds as near as this part of the upper one are printed as one number. */
const attainedWithin = 1e-3;

interface Column {
  title: string;
  about: string;
  /** Whether it identifies the head and is therefore known for every head. */
  names?: boolean;
  value: (head: Head) => Maybe;
  cell: (head: Head) => string;
}

const whole = (title: string, value: (head: Head) => Maybe): Column => ({
  title,
  about: "",
  names: true,
  value,
  cell: (head) => count(value(head)),
});

/** An end of a bound, which is printed rounded outward. */
interface End {
  sign: "≥" | "≤";
  value: number;
  /** Where the bound is attained, to its digits, the sign is left out. */
  attained: boolean;
}

/** A column of ends of bounds; nothing where none is known. */
const ends = (title: string, about: string, find: (head: Head) => End | null): Column => ({
  title,
  about,
  value: (head) => find(head)?.value ?? null,
  cell: (head) => {
    const end = find(head);
    if (end === null) return unknown;
    const text = end.value === 0 ? "0" : end.sign === "≥" ? atLeast(end.value) : atMost(end.value);
    return end.attained ? text : `${end.sign}\u202f${text}`;
  },
});

/** One end of a bound. A lower bound of 0 carries no information. */
const bound = (title: string, about: string, sign: "≥" | "≤", value: (head: Head) => Maybe): Column =>
  ends(title, about, (head) => {
    const found = value(head);
    return found === null || (sign === "≥" && found === 0) ? null : { sign, value: found, attained: false };
  });

type Ends = [Maybe, Maybe] | undefined;

/** The smallest spread: 0, its lower bound, or, if that carries no information, its upper bound; null if that is
 * not below the bound of the sharpest. */
function leastEnd(uniform: Ends, sharp: Ends, attained: boolean): End | null {
  const [low, high] = uniform ?? [null, null];
  const most = sharp?.[1] ?? null;
  if (low === null) return null;
  if (high !== null && most !== null && high <= nothing * most) return { sign: "≥", value: 0, attained: true };
  if (low > 0) return { sign: "≥", value: low, attained };
  return high !== null && most !== null && high < most ? { sign: "≤", value: high, attained: false } : null;
}

function mostEnd(sharp: Ends, attained: boolean): End | null {
  const value = sharp?.[1] ?? null;
  return value === null ? null : { sign: "≤", value, attained };
}

/** The least and the largest spread of some bounds. */
const spreads = (
  uniform: (head: Head) => Ends,
  sharp: (head: Head) => Ends,
  titles: [string, string],
  about: string,
): Column[] => [
  ends(titles[0], `Spread under the most uniform query${about}`, (head) =>
    leastEnd(uniform(head), sharp(head), isExact(head)),
  ),
  ends(titles[1], `Spread under the sharpest query${about}`, (head) => mostEnd(sharp(head), isExact(head))),
];

/** Results for rotary heads other than the bounds over their contexts. */
const overDistances: Column[] = [
  bound("Sharpest attained", "Spread of a context that a search found", "≥", (head) =>
    head.distances ? (head.sharp_bounds?.[0] ?? null) : null,
  ),
  bound(
    "Sharpest at any distance",
    "Proved whatever the length of the context and the rotary frequencies",
    "≤",
    (head) => head.distances?.sharp_at_most_anywhere ?? null,
  ),
  ends("Sharpest at equal distance 0", "For two keys at the query's own position, as without rotation", (head) => {
    const [low, high] = head.distances?.at_distance_zero.sharp_bounds ?? [null, null];
    return mostEnd([low, high], low !== null && high !== null && high - low <= attainedWithin * high);
  }),
];

const passes: Column = {
  title: "Passes",
  about: "Passes through shared weights, which read different norms",
  names: true,
  value: (head) => (head.pass === null ? null : head.pass === "first" ? 1 : 2),
  cell: (head) => (head.pass === null ? unknown : head.pass === "first" ? "1" : "≥\u202f2"),
};

/** Which stack has the layer, in order of appearance. */
function stack(heads: Head[]): Column {
  const order = [...new Set(heads.map((head) => head.stack))];
  return {
    title: "Stack",
    about: "Which stack has the layer",
    names: true,
    value: (head) => order.indexOf(head.stack),
    cell: (head) => head.stack,
  };
}

/** "contexts of at most 512 positions", or "any context". */
function scope(heads: Head[]): string {
  const within = new Set(heads.filter((head) => head.distances).map((head) => head.distances?.within ?? null));
  const [only] = within;
  return within.size === 1 && only !== null && only !== undefined
    ? `contexts of at most ${plural(only, "position")}`
    : within.size > 1
      ? "contexts as long as each head sees"
      : "any context";
}

const known = (head: Head): boolean => head.sharp_bounds !== undefined;
const isExact = (head: Head): boolean => head.sharp_spread !== null && head.sharp_spread !== undefined;

function columnsFor(heads: Head[]): Column[] {
  return [
    ...(heads.some((head) => head.stack) ? [stack(heads)] : []),
    whole("Layer", (head) => head.layer),
    whole("Head", (head) => head.head),
    ...(heads.some((head) => head.pass) ? [passes] : []),
    ...spreads(
      (head) => head.uniform_bounds,
      (head) => head.sharp_bounds,
      ["Most uniform", "Sharpest"],
      "",
    ),
    ...(heads.some((head) => head.distances) ? overDistances : []),
    ...(heads.some((head) => head.without_projection)
      ? spreads(
          (head) => head.without_projection?.uniform_bounds,
          (head) => head.without_projection?.sharp_bounds,
          ["Most uniform, mean left in", "Sharpest, mean left in"],
          " where the norm leaves the mean in",
        )
      : []),
  ];
}

/** How many different heads entries are of: with shared weights, each stands once for each norm that it reads. */
export const countHeads = (heads: Head[]): number =>
  new Set(heads.map((head) => `${head.stack}/${head.layer}/${head.head}`)).size;

/** Orders two heads by a column; the unknown come last in both directions. */
function compare(column: Column, a: Head, b: Head, direction: 1 | -1): number {
  const x = column.value(a);
  const y = column.value(b);
  if (x === null || y === null) return Number(x === null) - Number(y === null);
  return direction * (x - y);
}

/** How uniform and how sharp each head can be, sorted by any column; null where no head's spreads are known. */
export function showSpreads(heads: Head[]): HTMLElement | null {
  const measuredHeads = heads.filter(known);
  if (measuredHeads.length === 0) return null;
  const columns = columnsFor(measuredHeads);
  const body = el("tbody");
  let sorted: Column | undefined;
  let direction: 1 | -1 = 1;
  const headCells = columns.map((column) =>
    el(
      "th",
      { scope: "col", class: "number", "aria-sort": "none", title: column.about },
      button(column.title, () => {
        direction = column === sorted ? (direction === 1 ? -1 : 1) : 1;
        sorted = column;
        arrange();
      }),
    ),
  );
  const names = columns.filter((column) => column.names);
  const row = (head: Head) => {
    const cells = (some: Column[]) => some.map((column) => el("td", { class: "number" }, column.cell(head)));
    if (!head.refused) return el("tr", {}, ...cells(columns));
    // Replaces the numbers, and stays within the visible part of the table.
    const reason = el("div", { class: "reason" }, `not known: ${head.refused}`);
    return el("tr", {}, ...cells(names), el("td", { colspan: columns.length - names.length }, reason));
  };
  const arrange = () => {
    const order = sorted;
    const rows = order === undefined ? heads : [...heads].sort((a, b) => compare(order, a, b, direction));
    body.replaceChildren(...rows.slice(0, shownRows).map(row));
    columns.forEach((column, i) => {
      const how = column !== sorted ? "none" : direction === 1 ? "ascending" : "descending";
      headCells[i]?.setAttribute("aria-sort", how);
    });
  };
  arrange();
  const left = heads.length - shownRows;
  const trivial = measuredHeads.some((head) => leastEnd(head.uniform_bounds, head.sharp_bounds, false) === null);
  const bounded = measuredHeads.some((head) => !isExact(head) && !head.distances);
  const turning = measuredHeads.some((head) => head.distances);
  return el(
    "details",
    { open: heads.length <= 16 },
    el("summary", {}, `How uniform and how sharp each head can be (${plural(countHeads(heads), "head")})`),
    el(
      "p",
      { class: "muted" },
      `The largest difference between the scores of two keys, in ${scope(measuredHeads)}, for the query that makes it ` +
        "smallest and the query that makes it largest: no weight is more than e to that power times another." +
        (turning
          ? " Rotary heads rotate queries and keys by position, so the spread is over all distances. " +
            "Bounds are proved; “attained” is the spread of a context that a search found."
          : "") +
        (measuredHeads.some((head) => head.soft_cap) ? " The spreads are of capped scores." : "") +
        (bounded
          ? " ≤ and ≥ are bounds from the head's own norms of queries and keys, which hidden states may not attain."
          : "") +
        (trivial ? " – means that nothing is known beyond what the sharpest implies." : ""),
    ),
    el(
      "div",
      { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Table of spreads" },
      el("table", { class: "small sortable spreads" }, el("thead", {}, el("tr", {}, ...headCells)), body),
    ),
    left > 0
      ? el(
          "p",
          { class: "muted" },
          `The first ${count(shownRows)} in this order; ${plural(left, "more row")} in the JSON of this report.`,
        )
      : null,
  );
}
