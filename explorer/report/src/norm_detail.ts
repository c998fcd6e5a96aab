import type { Linear, Norm, Parameter } from "../../generated/report";
import { command, definitions, el, name, normLink, table } from "../../shared/dom";
import { count, kindName, number, percent, plural, unknown } from "../../shared/format";
import type { Maybe } from "../../shared/format";

const shown = 10;

/** A table of at most ten rows that says how many it leaves out; nothing for no rows. */
function short<T>(
  caption: string,
  heads: string[],
  items: T[],
  row: (item: T) => (Node | string)[],
  numeric: number[],
  wide = false,
): HTMLElement | null {
  if (items.length === 0) return null;
  return el(
    "div",
    { class: wide ? "block wide" : "block" },
    table(caption, heads, items.slice(0, shown).map(row), numeric),
    items.length > shown ? el("p", { class: "muted" }, `and ${count(items.length - shown)} more`) : null,
  );
}

const coordinate = (value: Maybe): string => (value === null ? unknown : String(value));

function parameters(norm: Norm): HTMLElement | null {
  const rows = (
    [
      ["gain", norm.gain],
      ["bias", norm.bias],
    ] as [string, Parameter | null][]
  ).filter((row): row is [string, Parameter] => row[1] !== null);
  if (norm.not_measured !== null) {
    return el("p", { class: "muted" }, "No numbers: ", name(norm.not_measured), ".");
  }
  if (rows.length === 0) return el("p", { class: "muted" }, "Neither gain nor bias: the image is a sphere.");
  return short(
    "Gain and bias",
    ["parameter", "min", "max", "mean", "std", "median size", "negative", "zero", "not finite", "tensor"],
    rows,
    ([label, p]) => [
      label,
      number(p.min),
      number(p.max),
      number(p.mean),
      number(p.std),
      number(p.median_abs),
      count(p.negative),
      count(p.zero),
      count(p.not_finite),
      name(p.tensor),
    ],
    [1, 2, 3, 4, 5, 6, 7, 8],
    true,
  );
}

const connections = (caption: string, items: Linear[]): HTMLElement | null =>
  short(
    caption,
    ["role", "tensor", "in → out"],
    items,
    (item) => [item.role, name(item.tensor), `${count(item.in)} → ${count(item.out)}`],
    [2],
    true,
  );

/** Everything the report knows about one norm, below its row, and what stands `beside` it. */
export function detail(norm: Norm, beside: HTMLElement | null): HTMLElement {
  const { image, null_space: nullSpace, next } = norm;
  return el(
    "div",
    { class: "detail" },
    definitions([
      [
        "Kind",
        kindName(norm.kind, norm.groups) +
          (norm.groups !== null && norm.groups > 1 ? `, ${plural(norm.groups, "group")}` : ""),
      ],
      ["Role", norm.layer === null ? norm.role : `${norm.role}, layer ${count(norm.layer)}`],
      ["Width", count(norm.width)],
      ["Placement", norm.placement],
      ["Place", norm.order_known ? null : "not known: listed by name"],
      ["Stack", norm.stack === "" ? null : name(norm.stack)],
      ["Applied", norm.applications === null || norm.applications === 1 ? null : plural(norm.applications, "time")],
      ["ε", `${number(norm.eps)} (${norm.eps_source})`],
      ["Stored gain", norm.gain_offset ? `plus ${number(norm.gain_offset)}` : null],
      [
        "Null space",
        nullSpace &&
          (nullSpace.dim === 0
            ? "none: no direction is lost"
            : `dimension ${count(nullSpace.dim)}` +
              (nullSpace.cosine_to_ones === null ? "" : `, cosine to all ones ${number(nullSpace.cosine_to_ones)}`)),
      ],
      [
        "Semi-axes",
        image &&
          `${count(image.semi_axes)}: longest ${number(image.longest)}, ` +
            `median ${number(image.median)}, shortest ${number(image.shortest)}`,
      ],
      [
        "Energy",
        image && `${percent(image.energy_top_1)} in the longest axis, ${percent(image.energy_top_8)} in eight`,
      ],
      [
        "Next norm",
        next &&
          el(
            "span",
            {},
            normLink(next.index, next.name),
            `, similarity ${number(next.similarity)}, longest axes at cosine ${number(next.top_axis_cosine)}`,
          ),
      ],
    ]),
    parameters(norm),
    short(
      "Longest axes",
      ["rank", "length", "× median", "coordinate", "weight"],
      image?.top_axes ?? [],
      (axis) => [
        String(axis.rank),
        number(axis.length),
        number(axis.ratio_to_median),
        coordinate(axis.coordinate),
        number(axis.weight),
      ],
      [0, 1, 2, 3, 4],
    ),
    short(
      "Null direction",
      ["coordinate", "weight"],
      nullSpace?.top ?? [],
      (entry) => [coordinate(entry.coordinate), number(entry.weight)],
      [0, 1],
    ),
    short(
      "Unusual gains",
      ["coordinate", "gain", "× median"],
      norm.outliers,
      (entry) => [coordinate(entry.coordinate), number(entry.gain), number(entry.ratio_to_median)],
      [0, 1, 2],
    ),
    connections("Read by", norm.readers),
    short(
      "How its readers use it",
      ["role", "removed", "by chance", "rows along the longest axis", "coordinate read most", "share"],
      norm.reader_weights,
      (weights) => [
        norm.readers[weights.reader]?.role ?? "",
        percent(weights.removed),
        percent(weights.removed_by_chance),
        count(weights.rows_along_longest_axis),
        coordinate(weights.features[0]?.coordinate ?? 0),
        percent(weights.features[0]?.share ?? 0),
      ],
      [1, 2, 3, 4, 5],
    ),
    connections("Written by", norm.writers),
    norm.connections_known ? null : el("p", { class: "muted" }, "Not all of its readers and writers are known."),
    beside,
    command(norm.reproduce),
  );
}
