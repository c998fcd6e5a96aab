import type { Chart } from "../../generated/charts";
import type { Compare } from "../../generated/compare";
import { el, name, slot, table } from "../../shared/dom";
import { measured, plural } from "../../shared/format";
import { showCharts } from "./charts";
import { lastPart, retitle, showFacts } from "./pages";

type Norm = Compare["norms"][number];

const verdicts: Record<Compare["agreement"], string> = {
  same: "Same: every tensor has the same values",
  equivalent: "Equivalent: both compute the same function",
  different: "Different: they do not compute the same function",
  "equivalent up to quantization":
    "Equivalent up to quantization: what differs is what the block formats of quantized matrices explain",
  undecided: "Undecided: nothing differs of what could be compared",
};

const composite = (norm: Norm): number =>
  norm.readers.reduce((worst, reader) => Math.max(worst, reader.composite, reader.bias), 0);

const facts = ({ old, new: now, tolerance, agreement }: Compare): [string, string | HTMLElement][] => [
  ["Verdict", verdicts[agreement]],
  ["Counts as rounding up to", measured(tolerance)],
  ["OLD", name(old)],
  ["NEW", name(now)],
];

function norms({ norms }: Compare): HTMLElement {
  const rows = norms.map((norm) => [
    name(norm.new),
    norm.agreement,
    measured(norm.gain_change),
    measured(norm.gain_cosine),
    measured(norm.bias_change),
    norm.readers.length === 0 ? "–" : measured(composite(norm)),
    norm.old_eps === norm.new_eps ? measured(norm.new_eps) : `${measured(norm.old_eps)} → ${measured(norm.new_eps)}`,
  ]);
  const heads = ["Norm", "Agreement", "Gain change", "Cosine", "Bias change", "Composite", "eps"];
  return table("Changes are relative; composite: of a norm with what reads it", heads, rows, [2, 3, 4, 5, 6]);
}

function others({ writers, others }: Compare): HTMLElement | null {
  const rows = [
    ...writers
      .filter(({ raw }) => raw > 0)
      .map((writer) => [name(writer.new), measured(writer.raw), measured(writer.centered)]),
    ...others
      .filter(({ change }) => change > 0)
      .map((other) => [
        name(other.new === null ? other.name : `${other.name} (${other.new})`),
        other.in_old ? (other.in_new ? measured(other.change) : "missing in NEW") : "new",
        "",
      ]),
  ];
  if (rows.length === 0) return null;
  return table("Other tensors that differ", ["Tensor", "Change", "Without its mean"], rows, [1, 2]);
}

/** Fills the page with two checkpoints compared. */
export function showComparison(comparison: Compare, charts: Chart[]): { redraw: () => void } {
  retitle("Two checkpoints compared", [lastPart(comparison.old), lastPart(comparison.new)], "comparison", [
    "heads",
    "ranges",
    "guide",
  ]);
  slot("model-line").textContent = [comparison.agreement, plural(comparison.norms.length, "norm")].join(" · ");
  showFacts(facts(comparison));
  slot("findings-body").append(
    comparison.findings.length === 0
      ? el("p", {}, "Nothing differs beyond rounding, and nothing was rewritten.")
      : el("ul", {}, ...comparison.findings.map(({ text }) => el("li", {}, text))),
  );
  if (comparison.not_compared.length > 0) {
    slot("findings-body").append(
      el("h3", {}, "Not compared"),
      el("ul", {}, ...comparison.not_compared.map((text) => el("li", {}, text))),
    );
  }
  const { redraw } = showCharts(charts);
  const rest = others(comparison);
  slot("norms-body").append(el("div", { class: "table-scroll" }, norms(comparison)));
  if (rest !== null) slot("norms-body").append(el("div", { class: "table-scroll" }, rest));
  slot("colophon").textContent = `Made by Normscope ${comparison.version}.`;
  return { redraw };
}
