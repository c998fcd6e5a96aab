import type { Norm } from "../../generated/report";
import { el, name } from "../../shared/dom";
import { count, kindName, measured, number, percent, unknown } from "../../shared/format";

type Value = number | string | null;

/** A column of the table of norms: its sort key and its contents. */
export interface Column {
  title: string;
  about: string;
  value: (norm: Norm) => Value;
  numeric: boolean;
  /** Whether it says which norm it is and not what was measured: on a narrow screen the row's details alone have it. */
  places?: boolean;
  /** Whether the column is left out where it is known of no norm: not all models have layers or centring norms. */
  optional?: boolean;
  /** Text above the table that replaces the column if all norms have the same value. */
  common?: (norm: Norm) => string;
  cell?: (norm: Norm) => Node | string;
}

const text = (title: string, about: string, value: (norm: Norm) => string): Column => ({
  title,
  about,
  value,
  numeric: false,
});

const numeric = (title: string, about: string, value: (norm: Norm) => number | null): Column => ({
  title,
  about,
  value,
  numeric: true,
});

const measure = (title: string, about: string, value: (norm: Norm) => number | null): Column => ({
  ...numeric(title, about, value),
  cell: (norm) => measured(value(norm)),
});

const columns: Column[] = [
  { ...numeric("#", "Place in the model", (norm) => norm.index), places: true },
  { ...text("Norm", "Name in the checkpoint", (norm) => norm.name), cell: (norm) => name(norm.name) },
  {
    ...text("Role", "The part of the model before or after which the norm stands", (norm) => norm.role),
    places: true,
    optional: true,
  },
  { ...numeric("Layer", "Layer of the stack", (norm) => norm.layer), places: true, optional: true },
  {
    ...text("Kind", "Kind of normalization", (norm) => kindName(norm.kind, norm.groups)),
    common: (norm) => kindName(norm.kind, norm.groups),
    places: true,
  },
  {
    ...numeric("Width", "Length of the vectors", (norm) => norm.width),
    common: (norm) => `width ${count(norm.width)}`,
    places: true,
  },
  {
    ...numeric("ε", "Added to the variance under the root", (norm) => norm.eps),
    common: (norm) => `ε = ${number(norm.eps)}`,
    places: true,
  },
  measure("Gain min", "Smallest gain", (norm) => norm.gain?.min ?? null),
  measure("Gain max", "Largest gain", (norm) => norm.gain?.max ?? null),
  measure("Condition", "Longest semi-axis of the image over the shortest", (norm) => norm.image?.condition ?? null),
  measure("Eff. dim.", "Effective dimension of the image", (norm) => norm.image?.effective_dimension ?? null),
  {
    ...numeric(
      "Top 8",
      "Share of the squared lengths in the eight longest axes",
      (norm) => norm.image?.energy_top_8 ?? null,
    ),
    cell: (norm) => percent(norm.image?.energy_top_8 ?? null),
  },
  {
    ...measure(
      "cos to 1",
      "Cosine between the null direction and the all-ones vector",
      (norm) => norm.null_space?.cosine_to_ones ?? null,
    ),
    optional: true,
  },
  numeric("Outliers", "Coordinates with an unusual gain", (norm) => norm.outlier_count),
];

/** The columns to show for these norms, and in words what all of them have in common. */
export function columnsFor(norms: Norm[]): { shown: Column[]; common: string[] } {
  const [first] = norms;
  const same = (column: Column) =>
    column.common !== undefined &&
    norms.length > 1 &&
    norms.every(
      (norm) => column.value(norm) !== null && first !== undefined && column.value(norm) === column.value(first),
    );
  const known = (norm: Norm, column: Column) => !["", "unknown", null].includes(column.value(norm) as string | null);
  const missing = (column: Column) => column.optional === true && !norms.some((norm) => known(norm, column));
  return {
    shown: columns.filter((column) => !same(column) && !missing(column)),
    common: columns.filter(same).flatMap((column) => (first && column.common ? [column.common(first)] : [])),
  };
}

/** The classes of a column's cells. */
export const classes = ({ numeric, places = false }: Column): string | null =>
  [...(numeric ? ["number"] : []), ...(places ? ["places"] : [])].join(" ") || null;

export function cell(column: Column, norm: Norm): Node | string {
  if (column.cell) return column.cell(norm);
  const value = column.value(norm);
  return column.numeric ? number(value) : el("bdi", {}, value === "" || value === null ? unknown : String(value));
}

/** Orders two norms by a column; the unknown come last in both directions. */
export function compare(column: Column, a: Norm, b: Norm, direction: 1 | -1): number {
  const x = column.value(a);
  const y = column.value(b);
  if (x === null || y === null) return x === y ? a.index - b.index : x === null ? 1 : -1;
  const order =
    typeof x === "number" && typeof y === "number"
      ? x - y
      : String(x).localeCompare(String(y), "en", { numeric: true });
  return order === 0 ? a.index - b.index : order * direction;
}
