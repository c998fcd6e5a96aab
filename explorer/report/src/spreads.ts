import type { Maybe } from "../../shared/chart";
import type { Head } from "./data";
import { button, el } from "../../shared/dom";
import { atLeast, atMost, count, measured, plural, unknown } from "../../shared/format";

/** Rows put on the page; a column head brings the others' extremes to the top. */
const shownRows = 200;
/** Beside the sharpest, a most uniform spread of this part is none. */
const nothing = 1e-8;

interface Column {
  title: string;
  about: string;
  value: (head: Head) => Maybe;
  cell: (head: Head) => string;
}

const whole = (title: string, value: (head: Head) => Maybe): Column => ({
  title,
  about: "",
  value,
  cell: (head) => count(value(head)),
});

type End = "≥" | "≤" | "";

/** An end of a bound, rounded outward; without an end, a measured number. */
const rounded = (end: End, value: number): string =>
  end === "≥" ? atLeast(value) : end === "≤" ? atMost(value) : measured(value);

/** With its sign. */
const ended = (end: End, value: number): string => (end === "" ? "" : `${end}\u202f`) + rounded(end, value);

/** The least and the largest spread of some bounds: exact, or as bounds from outside. */
function spreads(
  exact: (head: Head) => boolean,
  uniform: (head: Head) => [Maybe, Maybe] | undefined,
  sharp: (head: Head) => [Maybe, Maybe] | undefined,
  titles: [string, string],
  about: string,
): Column[] {
  const outer = (head: Head) => sharp(head)?.[1] ?? null;
  const least = (head: Head) => {
    const value = uniform(head)?.[exact(head) ? 1 : 0] ?? null;
    return value !== null && value <= nothing * (outer(head) ?? 0) ? 0 : value;
  };
  const most = (head: Head) => (exact(head) ? (sharp(head)?.[0] ?? null) : outer(head));
  const shown = (end: End, value: (head: Head) => Maybe) => (head: Head) => {
    const found = value(head);
    if (found === null) return unknown;
    // Exact ones round as bounds do: rounded otherwise, a sorted column would not look sorted.
    const text = found === 0 ? "0" : rounded(end, found);
    return exact(head) ? text : `${end}\u202f${text}`;
  };
  return [
    { title: titles[0], about: `Spread under the most uniform query${about}`, value: least, cell: shown("≥", least) },
    { title: titles[1], about: `Spread under the sharpest query${about}`, value: most, cell: shown("≤", most) },
  ];
}

/** One end of a bound, with its sign. */
const bound = (title: string, about: string, end: End, value: (head: Head) => Maybe): Column => ({
  title,
  about,
  value,
  cell: (head) => {
    const found = value(head);
    return found === null ? unknown : ended(end, found);
  },
});

/** What is known of rotary heads beside the bounds over their contexts. */
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
  bound(
    "Sharpest at equal distance 0",
    "Of two keys where the query stands, as if nothing turned",
    "",
    (head) => head.distances?.at_distance_zero.sharp_bounds[1] ?? null,
  ),
];

const passes: Column = {
  title: "Passes",
  about: "Passes through shared weights, which read different norms",
  value: (head) => (head.pass === null ? null : head.pass === "first" ? 1 : 2),
  cell: (head) => (head.pass === null ? unknown : head.pass === "first" ? "1" : "≥\u202f2"),
};

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
    whole("Layer", (head) => head.layer),
    whole("Head", (head) => head.head),
    ...(heads.some((head) => head.pass) ? [passes] : []),
    ...spreads(
      isExact,
      (head) => head.uniform_bounds,
      (head) => head.sharp_bounds,
      ["Most uniform", "Sharpest"],
      "",
    ),
    ...(heads.some((head) => head.distances) ? overDistances : []),
    ...(heads.some((head) => head.without_projection)
      ? spreads(
          isExact,
          (head) => head.without_projection?.uniform_bounds,
          (head) => head.without_projection?.sharp_bounds,
          ["Most uniform, mean left in", "Sharpest, mean left in"],
          " where the norm leaves the mean in",
        )
      : []),
  ];
}

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
  const refused = heads.some((head) => head.refused);
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
  const reason = refused ? el("th", { scope: "col" }, "Not known, because") : null;
  const arrange = () => {
    const order = sorted;
    const rows =
      order === undefined ? heads : [...heads].sort((a, b) => compare(order, a, b, direction));
    body.replaceChildren(
      ...rows
        .slice(0, shownRows)
        .map((head) =>
          el(
            "tr",
            {},
            ...columns.map((column) => el("td", { class: "number" }, column.cell(head))),
            refused ? el("td", {}, head.refused ?? "") : null,
          ),
        ),
    );
    columns.forEach((column, i) => {
      const how = column !== sorted ? "none" : direction === 1 ? "ascending" : "descending";
      headCells[i]?.setAttribute("aria-sort", how);
    });
  };
  arrange();
  const left = heads.length - shownRows;
  const bounded = measuredHeads.some((head) => !isExact(head) && !head.distances);
  const turning = measuredHeads.some((head) => head.distances);
  return el(
    "details",
    { open: heads.length <= 16 },
    el("summary", {}, `How uniform and how sharp each head can be (${plural(heads.length, "head")})`),
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
          : ""),
    ),
    el(
      "div",
      { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Table of spreads" },
      el("table", { class: "small sortable spreads" }, el("thead", {}, el("tr", {}, ...headCells, reason)), body),
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
