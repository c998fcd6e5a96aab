import type { Attained, Attribute, Component, Token } from "../../generated/attribute";
import type { Chart } from "../../generated/charts";
import { el, name, slot, table } from "../../shared/dom";
import { atLeast, atMost, measured, plural, unknown } from "../../shared/format";
import { showCharts } from "./charts";
import { lastPart, rename, retitle, showFacts } from "./pages";

const shown = (token: Token): string => (token.name === null ? `#${token.token}` : JSON.stringify(token.name));

const removals: Record<Attribute["removal"], string> = {
  zero: "nothing",
  mean: "its mean over the positions up to the one that is read",
  given: "a row of a file",
};

/** Those of the largest exact changes first. */
const ordered = ({ components }: Attribute): Component[] =>
  [...components].sort((a, b) => Math.abs(b.exact) - Math.abs(a.exact));

function components(result: Attribute): HTMLElement {
  const rows = ordered(result).map((component) => [
    name(component.name),
    measured(component.share),
    measured(component.frozen),
    measured(component.price),
    measured(component.exact),
    measured(component.gradient),
    atMost(component.remainder),
    measured(component.rerun),
  ]);
  const heads = ["Component", "Share", "Frozen", "Price", "Exact", "Gradient", "± at most", "Run again"];
  return table("Change of the logit when a component is removed", heads, rows, [1, 2, 3, 4, 5, 6, 7]);
}

/** What other rules credit, what paths through heads carry, and what no context exceeds, where that was asked for. */
function rules(result: Attribute): HTMLElement {
  const bounded = result.components.some((component) => component.anywhere !== null);
  const rows = ordered(result).map((component) => [
    name(component.name),
    measured(component.share),
    measured(component.rules.gradient_input),
    measured(component.rules.half_rule),
    measured(component.paths),
    measured(component.rerun),
    ...(bounded ? [atLeast(component.anywhere?.least ?? null), atMost(component.anywhere?.most ?? null)] : []),
  ]);
  const heads = ["Component", "Share", "Gradient × input", "Half rule", "Sum over paths", "Run again"];
  if (bounded) heads.push("Least share ever", "Most ever");
  return table("By other rules", heads, rows, [1, 2, 3, 4, 5, 6, 7].slice(0, heads.length - 1));
}

/** The tables of components: effects of removing each, and what else is said of it. */
export const componentTables = (result: Attribute): HTMLElement[] => [components(result), rules(result)];

const attained = ({ components, value }: Attained): string =>
  `${measured(value)}: ${components.length === 0 ? "none" : components.join(", ")}`;

function bounds({ bounds }: Attribute): HTMLElement {
  const rows = bounds.map((bound) => [
    String(bound.removed),
    atLeast(bound.least),
    atMost(bound.most),
    attained(bound.attained_least),
    attained(bound.attained_most),
    bound.proof === "every_set" ? "every set searched" : "relaxation",
  ]);
  const heads = ["Removed", "At least", "At most", "Least attained", "Most attained", "Proof"];
  return table("What is left of any logit over what freezing predicts, for every set", heads, rows, [0, 1, 2]);
}

function circuit({ circuit }: Attribute): HTMLElement | null {
  if (circuit === null) return null;
  const row = [circuit.exact, circuit.frozen, circuit.gradient, circuit.rerun].map((value) => measured(value));
  const title = `The logit with only ${circuit.kept.join(", ")} kept`;
  return table(title, ["Exact behind the norm", "Frozen", "By the gradient", "Run again"], [row], [0, 1, 2, 3]);
}

/** Which estimates of a circuit's logit have the other sign than the exact one; empty if none has. */
export function wrongSigns({ circuit }: Attribute): string {
  if (circuit === null) return "";
  const frozen = circuit.exact * circuit.frozen < 0;
  const gradient = circuit.exact * circuit.gradient < 0;
  if (frozen && gradient) return "Frozen and by the gradient, the logit has the wrong sign.";
  if (frozen) return "Frozen, the logit has the wrong sign.";
  return gradient ? "By the gradient, the logit has the wrong sign." : "";
}

/** Fills the page with a logit split by component. */
export function showAttributePage(result: Attribute, charts: Chart[]): { redraw: () => void } {
  retitle("A logit of", [lastPart(result.path)], "attribution", ["findings", "ranges", "guide"]);
  const token = result.tokens[result.at];
  slot("model-line").textContent = [
    result.architecture,
    plural(result.tokens.length, "token"),
    plural(result.components.length, "component"),
  ].join(" · ");
  showFacts([
    ["Model", name(result.path)],
    ["Text", name(result.tokens.map((one) => one.name ?? `#${one.token} `).join(""))],
    ["Read after", name(`position ${result.at}, ${token === undefined ? unknown : shown(token)}`)],
    [
      "Logit of",
      name(result.against === null ? shown(result.target) : `${shown(result.target)} less ${shown(result.against)}`),
    ],
    ["Its value", measured(result.value)],
    ["Constant", measured(result.constant)],
    ["Replacement of a removed component", removals[result.removal]],
  ]);
  for (const fold of result.folds) {
    const text = `Near a fold: position ${fold.position} at ${fold.norm}, radius ${measured(fold.radius)}.`;
    slot("overview-body").append(el("p", {}, text));
  }
  for (const note of result.notes) slot("overview-body").append(el("p", { class: "muted" }, note));
  const kept = circuit(result);
  if (kept !== null) slot("overview-body").append(el("div", { class: "table-scroll" }, kept));
  const wrong = wrongSigns(result);
  if (wrong !== "") slot("overview-body").append(el("p", {}, wrong));
  const { redraw } = showCharts(charts);
  rename("norms", "Components");
  for (const part of componentTables(result)) {
    slot("norms-body").append(el("div", { class: "table-scroll" }, part));
  }
  rename("heads", "Every set of components");
  slot("heads-body").append(el("div", { class: "table-scroll" }, bounds(result)));
  slot("colophon").textContent = `Made by Normscope ${result.version}.`;
  return { redraw };
}
