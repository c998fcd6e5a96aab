import type { Chart } from "../../generated/charts";
import type { TokenTrace } from "../../generated/token-trace";
import { el, name, slot, table } from "../../shared/dom";
import { measured, percent, plural, unknown } from "../../shared/format";
import { showCharts } from "./charts";
import { lastPart, rename, retitle, showFacts } from "./pages";

type Token = { token: number; name: string | null };

const shown = (token: Token): HTMLElement => name(token.name === null ? `#${token.token}` : JSON.stringify(token.name));

const range = (values: (number | null)[]): string => {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? unknown : `${measured(Math.min(...known))} to ${measured(Math.max(...known))}`;
};

function predictions({ tokens, predictions }: TokenTrace): HTMLElement {
  const rows = predictions.map(({ likeliest, next }, position) => {
    const first = likeliest[0];
    return [
      String(position),
      shown(tokens[position]!),
      first === undefined ? unknown : shown(first),
      first === undefined ? unknown : percent(first.probability ?? 0),
      next === null ? unknown : percent(next.probability ?? 0),
      next === null ? unknown : String(next.rank + 1),
    ];
  });
  const heads = ["Position", "Token", "Likeliest next", "Its probability", "That of what follows", "Its rank"];
  return table("What the model expects after each token", heads, rows, [0, 3, 4, 5]);
}

function norms({ norms }: TokenTrace): HTMLElement {
  const rows = norms.map((norm) => [
    name(norm.name),
    range(norm.tokens.map(({ sigma }) => sigma)),
    norm.centers
      ? range(norm.tokens.map(({ ones_share }) => (ones_share === null ? null : 100 * ones_share)))
      : unknown,
    range(norm.tokens.map(({ radius }) => radius)),
    range(norm.tokens.map(({ place }) => place[0] ?? null)),
  ]);
  const heads = ["Norm", "Divides by", "Projects away, % of |x|²", "Radius", "Place on the longest axis"];
  return table("The tokens of this text at each norm", heads, rows, [1, 2, 3, 4]);
}

/** What a head looks at from the last token, and the keys of the text that it can select and has lost. */
function heads({ heads, key_positions, tokens, attention, first_query }: TokenTrace): HTMLElement {
  const last = tokens.length - 1;
  const rows = attention.map(({ layer, head, key, weights }) => {
    const keys = heads.find((other) => other.layer === layer && other.key === key);
    const row = weights[last - first_query] ?? [];
    const most = row.reduce((best, weight, t) => (weight > (row[best] ?? 0) ? t : best), 0);
    const lost = keys?.lost.flatMap(({ position }, i) => [i === 0 ? "" : ", ", shown(tokens[position]!)]) ?? [];
    return [
      ...[String(layer), String(head)],
      row.length === 0 ? unknown : shown(tokens[most]!),
      row.length === 0 ? unknown : percent(row[most] ?? 0),
      keys === undefined
        ? unknown
        : keys.refused === ""
          ? `${keys.selectable.length} of ${key_positions}`
          : keys.refused,
      lost.length === 0 ? unknown : el("span", {}, ...lost),
    ];
  });
  return table(
    "What each head attends to from the last token, and the keys of this text that it can select",
    ["Layer", "Head", "Attends to", "Its weight", "Selectable", "Lost"],
    rows,
    [0, 1, 3],
  );
}

/** Fills the page with a text that went through a model. */
export function showTracePage(trace: TokenTrace, charts: Chart[]): { redraw: () => void } {
  retitle("A text through", [lastPart(trace.path)], "trace", ["findings", "ranges", "guide"]);
  slot("model-line").textContent = [
    trace.architecture,
    plural(trace.tokens.length, "token"),
    plural(trace.norms.length, "norm"),
  ].join(" · ");
  const text = trace.tokens.map((token) => token.name ?? `#${token.token} `).join("");
  showFacts([
    ["Model", name(trace.path)],
    ["Text", name(text)],
  ]);
  if (trace.reach_refused !== "") slot("overview-body").append(el("p", { class: "muted" }, trace.reach_refused));
  for (const note of trace.notes) slot("overview-body").append(el("p", { class: "muted" }, note));
  slot("overview-body").append(el("div", { class: "table-scroll" }, predictions(trace)));
  const { redraw } = showCharts(charts);
  slot("norms-body").append(el("div", { class: "table-scroll" }, norms(trace)));
  rename("heads", "Heads");
  slot("heads-body").append(el("div", { class: "table-scroll" }, heads(trace)));
  slot("colophon").textContent = `Made by Normscope ${trace.version}.`;
  return { redraw };
}
