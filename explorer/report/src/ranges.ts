import type { Chart } from "../../generated/charts";
import type { Ranges as RangesDocument } from "../../generated/ranges";
import type { NormRanges, ReaderRanges, Report } from "../../generated/report";
import { el, name, slot, table } from "../../shared/dom";
import { atLeast, atMost, count, measured, plural, unknown } from "../../shared/format";
import { showCharts } from "./charts";
import { lastPart, retitle, showFacts } from "./pages";

type Ranges = Report["ranges"];

const shownRows = 200;

const types: Record<string, string> = {
  float16: "float16",
  bfloat16: "bfloat16",
  float8_e4m3: "FP8 E4M3",
  float8_e5m2: "FP8 E5M2",
};

interface Row {
  norm: string;
  reader: ReaderRanges;
}

const size = ({ lowest, highest }: ReaderRanges): number =>
  Math.max(Math.abs(lowest?.bound ?? 0), Math.abs(highest?.bound ?? 0));

const named = (overflowing: string[]): string => overflowing.map((type) => types[type] ?? type).join(", ");

function cells({ norm, reader }: Row): (string | Node)[] {
  return [
    name(norm),
    name(reader.role),
    count(reader.rows),
    atLeast(reader.lowest?.bound ?? null),
    atMost(reader.highest?.bound ?? null),
    measured(reader.worst_over_typical ?? null),
    measured(reader.int8?.typical_steps ?? null),
    count(reader.never_positive?.count ?? null),
    count(reader.never_negative?.count ?? null),
    named(reader.may_overflow ?? []) || unknown,
  ];
}

/** A table that scrolls in its frame, behind a summary line where it is long. */
function folded(title: string, content: HTMLElement, rows: number, more: string | null): HTMLElement {
  return el(
    "details",
    { open: rows <= 16 },
    el("summary", {}, title),
    el("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": title }, content),
    more === null ? null : el("p", { class: "muted" }, more),
  );
}

function showReaders(norms: NormRanges[]): HTMLElement | null {
  const rows = norms.flatMap(({ name: norm, readers }) =>
    (readers ?? []).filter(({ refused }) => refused === undefined).map((reader) => ({ norm, reader })),
  );
  if (rows.length === 0) return null;
  const shown =
    rows.length <= shownRows ? rows : [...rows].sort((a, b) => size(b.reader) - size(a.reader)).slice(0, shownRows);
  const heads = [
    "Norm",
    "Read by",
    "Outputs",
    "Lowest",
    "Highest",
    "Over typical",
    "int8 steps",
    "Never > 0",
    "Never < 0",
    "Overflows",
  ];
  return folded(
    `Outputs of linear maps behind norms (${plural(rows.length, "map")})`,
    table("", heads, shown.map(cells), [2, 3, 4, 5, 6, 7, 8]),
    rows.length,
    rows.length > shownRows ? `The ${shownRows} with the largest numbers; the others are in the JSON.` : null,
  );
}

function showOutputs(norms: NormRanges[]): HTMLElement | null {
  const known = norms.flatMap((norm) => (norm.output === undefined ? [] : [{ ...norm, output: norm.output }]));
  if (known.length === 0) return null;
  const heads = ["Norm", "Largest", "at feature", "Over median feature", "int8 steps of the median feature"];
  return folded(
    `Outputs of the norms (${plural(known.length, "norm")})`,
    table(
      "",
      heads,
      known
        .slice(0, shownRows)
        .map(({ name: norm, output }) => [
          name(norm),
          atMost(output.largest),
          String(output.feature),
          measured(output.median > 0 ? output.largest / output.median : null),
          measured(output.int8.typical_steps),
        ]),
      [1, 2, 3, 4],
    ),
    known.length,
    known.length > shownRows ? `The first ${shownRows} in the order of the forward pass.` : null,
  );
}

/** The reasons why ranges are not known, each once. */
function showReasons(norms: NormRanges[]): HTMLElement | null {
  const reasons = new Set(
    norms.flatMap(({ refused, readers }) => [refused, ...(readers ?? []).map((reader) => reader.refused)]),
  );
  reasons.delete(undefined);
  const listed = [...reasons].map(String);
  if (listed.length === 0) return null;
  return el(
    "p",
    { dir: "auto" },
    `The range of some norms or maps is not known: ${listed.slice(0, 3).join("; ")}${listed.length > 3 ? "; …" : "."}`,
  );
}

function logitsText({ logits, logits_refused }: Ranges): string {
  return logits === null
    ? `Logits: not known: ${logits_refused}.`
    : `Every logit is between ${atLeast(logits.lowest.bound)} and ${atMost(logits.highest.bound)}, whatever the input.`;
}

/** Fills the section on ranges. */
export function showRanges(ranges: Ranges): void {
  const body = slot("ranges-body");
  const { norms } = ranges;
  if (norms.length === 0) {
    body.append(el("p", {}, "No norms, so nothing has a range."));
    return;
  }
  const parts = [
    el(
      "p",
      {},
      "The output of a norm stays on its ellipsoid whatever enters, so each number that a linear map computes " +
        "directly behind it has a proved lowest and highest value. “Over typical” is the largest of these over the " +
        "typical size, a root mean square over all directions alike; “int8 steps” are those that a typical number " +
        "takes of the 127 of a scale that no input exceeds. Outputs that are never positive are dead units behind a " +
        "ReLU, outputs that are never negative are always on.",
    ),
    el("p", {}, logitsText(ranges)),
    showReaders(norms),
    showOutputs(norms),
    uneven(norms),
    showReasons(norms),
  ];
  for (const part of parts) if (part !== null) body.append(part);
}

/** Norms for which one scale for all features of the output is too wide for most of them. */
function uneven(norms: NormRanges[]): HTMLElement | null {
  const worst = norms.reduce<{ norm: string; ratio: number } | null>((most, { name: norm, output, readers }) => {
    const ratio = output === undefined || !readers?.length || !(output.median > 0) ? 0 : output.largest / output.median;
    return ratio > (most?.ratio ?? 2) ? { norm, ratio } : most;
  }, null);
  if (worst === null) return null;
  return el(
    "p",
    {},
    `The features of `,
    name(worst.norm),
    ` are the least even: its largest reaches ${measured(worst.ratio)} times as far as its median one. `,
    el("code", {}, "normscope rewrite MODEL -o OUT --migrate"),
    " moves powers of two from a norm's gain into its readers in a safetensors file, exactly, so that the largest " +
      "values of its features agree to a factor of 2.",
  );
}

/** Fills the page with the ranges of a model alone. */
export function showRangesPage(document: RangesDocument, charts: Chart[]): { redraw: () => void } {
  const model = lastPart(document.path);
  retitle("Ranges behind the norms:", [model], "ranges", ["findings", "norms", "heads", "guide"]);
  const maps = document.norms.reduce((sum, { readers }) => sum + (readers?.length ?? 0), 0);
  slot("model-line").textContent = [
    document.architecture,
    plural(document.norms.length, "norm"),
    plural(maps, "linear map behind them", "linear maps behind them"),
  ].join(" · ");
  showFacts([
    ["Model", name(document.path)],
    ["Logits", logitsText(document)],
  ]);
  for (const note of document.notes) slot("overview-body").append(el("p", { class: "muted" }, note));
  const { redraw } = showCharts(charts);
  showRanges(document);
  slot("colophon").textContent = `Made by Normscope ${document.version}.`;
  return { redraw };
}
