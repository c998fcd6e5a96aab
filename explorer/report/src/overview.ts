import type { Norm, Report } from "../../generated/report";
import { definitions, el, name, normLink, slot } from "../../shared/dom";
import { bytes, count, kindName, large, number, plural, unknown } from "../../shared/format";
import type { Maybe } from "../../shared/format";

/** How many of each, most frequent first: "24 pre, 1 post". */
function tally(values: string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/** The norm where `measure` is largest, for a key fact. */
function largest(norms: Norm[], measure: (norm: Norm) => Maybe): { norm: Norm; value: number } | null {
  let best: { norm: Norm; value: number } | null = null;
  for (const norm of norms) {
    const value = measure(norm);
    if (value !== null && (best === null || value > best.value)) best = { norm, value };
  }
  return best;
}

const fact = (term: string, value: string, ...about: (Node | string)[]): HTMLElement =>
  el("div", {}, el("dt", {}, term), el("dd", { class: "value" }, value), el("dd", { class: "about" }, ...about));

const at = (norm: Norm): HTMLElement => normLink(norm.index, norm.name);

function keyFacts(report: Report): HTMLElement[] {
  const { model, norms } = report;
  const kinds = tally(norms.map((norm) => kindName(norm.kind, norm.groups)));
  const others = model.other_norms.map((other) => `${count(other.count)} ${other.kind}`);
  const facts = [
    fact(
      "Norms",
      count(norms.length),
      kinds.map(([kind, n]) => (kinds.length > 1 ? `${n} ${kind}` : kind)).join(", "),
      others.length > 0 ? ` · not analysed: ${others.join(", ")}` : "",
    ),
  ];
  const stack = [
    model.layers ? plural(model.layers, "layer") : "",
    model.heads_per_layer ? `${plural(model.heads_per_layer, "head")} each` : "",
  ].filter((part) => part !== "");
  if (model.width) facts.push(fact("Width", count(model.width), stack.join(", ")));
  facts.push(
    fact("Parameters", large(model.parameters), model.tensors === null ? "" : `in ${plural(model.tensors, "tensor")}`),
  );

  const stretched = largest(norms, (norm) => norm.image?.condition ?? null);
  if (stretched)
    facts.push(
      fact("Most stretched", `${number(stretched.value, 4)} : 1`, "longest to shortest axis, ", at(stretched.norm)),
    );
  const gain = largest(norms, ({ gain: g }) => (g?.min == null || g.max == null ? null : Math.max(-g.min, g.max)));
  if (gain) facts.push(fact("Largest gain", number(gain.value), "by size, ", at(gain.norm)));
  const flattest = largest(norms, ({ image }) =>
    image?.effective_dimension == null ? null : -image.effective_dimension,
  );
  if (flattest) {
    facts.push(
      fact(
        "Fewest directions",
        number(-flattest.value),
        `effective, of ${count(flattest.norm.image?.semi_axes ?? null)}, `,
        at(flattest.norm),
      ),
    );
  }
  return facts;
}

/** Remarks under a heading, the ninth and later ones folded away. */
function remarks(heading: string, items: string[]): HTMLElement | null {
  if (items.length === 0) return null;
  const list = (part: string[]) => el("ul", {}, ...part.map((item) => el("li", {}, name(item))));
  const first = items.length > 8 ? 5 : 8;
  return el(
    "div",
    { class: "remarks" },
    el("h3", {}, heading),
    list(items.slice(0, first)),
    items.length > first
      ? el("details", {}, el("summary", {}, `and ${count(items.length - first)} more`), list(items.slice(first)))
      : null,
  );
}

function provenance({ model }: Report): HTMLElement {
  const size = model.files.reduce<Maybe>(
    (sum, file) => (sum === null || file.bytes === null ? null : sum + file.bytes),
    0,
  );
  const files = model.files.slice(0, 40).map((file): [string, Node] => [bytes(file.bytes), name(file.name)]);
  const metadata = Object.entries(model.metadata).map(([key, value]): [string, Node] => [
    key,
    name(typeof value === "string" ? value : JSON.stringify(value)),
  ]);
  return el(
    "details",
    { class: "provenance" },
    el("summary", {}, `Files and metadata (${plural(model.files.length, "file")}, ${bytes(size)})`),
    definitions([
      ["Path", name(model.path)],
      ["Format", model.format],
      ["Recognized by", model.evidence],
    ]),
    definitions(files),
    model.files.length > 40 ? el("p", { class: "muted" }, `and ${plural(model.files.length - 40, "more file")}`) : null,
    definitions(metadata),
  );
}

/** What the budget did not suffice for and the commands that compute it; empty where it did. */
function coverage({ complete, left_out: left }: Report): string {
  if (complete) return "";
  const parts = [
    left.heads > 0 ? `${plural(left.heads, "head")} (normscope heads)` : "",
    left.readers > 0 ? `${plural(left.readers, "reader")} (normscope ranges)` : "",
    left.tokens > 0 ? `${plural(left.tokens, "token")} (normscope reach)` : "",
  ];
  return `left out, beyond the budget: ${parts.filter((part) => part !== "").join(", ")}`;
}

/** Fills the title block and the overview. */
export function showOverview(report: Report): void {
  const { model, norms } = report;
  document.title = `${model.name} · Normscope report`;
  slot("model-name").replaceChildren(name(model.name));
  const line = [
    model.title || model.architecture || "unknown architecture",
    model.format,
    plural(norms.length, "norm"),
    coverage(report),
  ].filter((part) => part !== "" && part !== unknown);
  slot("model-line").textContent = line.join(" · ");
  slot("key-facts").append(...keyFacts(report));
  for (const part of [remarks("Missing", model.missing), remarks("Notes", model.notes), provenance(report)]) {
    if (part !== null) slot("overview-body").append(part);
  }
  slot("colophon").textContent = `Made by Normscope ${report.version}.`;
}
