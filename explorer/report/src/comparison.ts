import type { Chart } from "../../generated/charts";
import type { Compare } from "../../generated/compare";
import { el, name, slot, table } from "../../shared/dom";
import { measured, plural } from "../../shared/format";
import { matchedBranches } from "./branches";
import { showCharts } from "./charts";
import { lastPart, rename, retitle, showFacts } from "./pages";

type Norm = Compare["norms"][number];

const verdicts: Record<Compare["agreement"], string> = {
  same: "Same: every tensor has the same values",
  equivalent: "Equivalent: both compute the same function",
  different: "Different: they do not compute the same function",
  "equivalent up to quantization":
    "Equivalent up to quantization: what differs is what the block formats of quantized matrices explain",
  undecided: "Undecided: no proof that they compute the same, and no witness that they do not",
};

function witnessFact({ witness, no_witness }: Compare): [string, string | HTMLElement][] {
  if (witness === undefined) return no_witness === undefined ? [] : [["Witness", no_witness]];
  const { tokens, position, token, of_features, old_logit, new_logit, old_error, new_error, rounding } = witness;
  const number = (value: number | null): string => (value === null ? "not finite" : value.toPrecision(6));
  const error = (value: number | null): string => (value === null ? "unknown" : measured(value));
  return [
    [
      "Witness",
      `After the tokens ${tokens.slice(0, position + 1).join(" ")}, ${of_features ? "hidden feature" : "the logit of token"} ` +
        `${token} is ${number(new_logit)} in NEW and ${number(old_logit)} in OLD`,
    ],
    [
      "Errors, estimated",
      `${error(new_error)} in NEW, ${error(old_error)} in OLD; rounding of the weights explains ${error(rounding)}`,
    ],
  ];
}

/** Every map that reads a norm, and by what it matches that of OLD. */
function matches({ norms, tolerance, quantizations }: Compare): HTMLElement | null {
  const by = (reader: Norm["readers"][number]): string => {
    const error = Math.max(reader.composite, reader.bias);
    if (error > tolerance) {
      return quantizations.some((found) => found.new === reader.new && found.explained) ? "quantization" : "differs";
    }
    return reader.raw === 0 ? "equal weights" : reader.raw > tolerance ? "gain in the weights" : "rounding";
  };
  const rows = norms.flatMap((norm) =>
    norm.readers.map((reader) => [
      name(norm.new),
      name(reader.new),
      by(reader),
      measured(reader.raw),
      measured(reader.composite),
      measured(reader.bias),
    ]),
  );
  if (rows.length === 0) return null;
  const heads = ["Norm", "Read by", "Matches by", "Stored", "With gain", "Bias"];
  return table("What reads each norm, and by what it matches OLD", heads, rows, [3, 4, 5]);
}

const composite = (norm: Norm): number =>
  norm.readers.reduce((worst, reader) => Math.max(worst, reader.composite, reader.bias), 0);

const facts = (comparison: Compare): [string, string | HTMLElement][] => {
  const { old, new: now, tolerance, agreement } = comparison;
  return [
    ["Verdict", verdicts[agreement]],
    ["Counts as rounding up to", measured(tolerance)],
    ...witnessFact(comparison),
    ["OLD", name(old)],
    ["NEW", name(now)],
  ];
};

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
  const hasBranches = comparison.branches.length > 0;
  retitle("Two checkpoints compared", [lastPart(comparison.old), lastPart(comparison.new)], "comparison", [
    ...(hasBranches ? [] : ["heads"]),
    "ranges",
    "guide",
  ]);
  if (hasBranches) {
    rename("heads", "Heads, neurons and experts");
    slot("heads-body").append(...matchedBranches(comparison));
  }
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
  const maps = matches(comparison);
  if (maps !== null) slot("norms-body").append(el("div", { class: "table-scroll" }, maps));
  if (rest !== null) slot("norms-body").append(el("div", { class: "table-scroll" }, rest));
  slot("colophon").textContent = `Made by Normscope ${comparison.version}.`;
  return { redraw };
}
