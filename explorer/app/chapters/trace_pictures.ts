import type { TokenTrace } from "../../generated/token-trace";
import { el } from "../../shared/dom";
import { number, percent } from "../../shared/format";
import type { Table } from "../figure";
import { mark } from "../svg";

/** Byte-level BPE has Ġ for a space and Ċ for the end of a line, llama2.c's tokenizers have ▁ or a space itself. */
const letter = (name: string | null): string =>
  name === null ? "?" : name.replaceAll(/[\nĊ]/g, "⏎").replaceAll(/[ Ġ▁]/g, "␣");
export const spoken = (name: string | null): string =>
  name === "\n" ? "end of line" : name === null ? "unknown" : name.replaceAll(/[Ġ▁]/g, " ");
export const named = ({ token, name }: { token: number; name: string | null }): string =>
  name === null ? `#${token}` : letter(name);
const short = (norm: string): string => norm.replace(/^transformer\./, "");

type Norm = TokenTrace["norms"][number];

/** The ellipse of a norm along its two longest axes, with the letters as dots. */
function ellipse(norm: Norm, chosen: number): SVGSVGElement {
  const [long, second] = norm.axes;
  const ratio = long !== undefined && second !== undefined ? second.length / long.length : 1;
  const svg = mark("svg", {
    viewBox: "-1.08 -1.08 2.16 2.16",
    role: "img",
    "aria-label": `Letters on the ellipsoid of ${short(norm.name)}`,
  });
  const line = { fill: "none", stroke: "var(--muted)", "stroke-width": 0.012 };
  svg.append(
    mark("ellipse", { cx: 0, cy: 0, rx: 1, ry: ratio, ...line }),
    mark("line", { x1: -1, x2: 1, y1: 0, y2: 0, ...line, "stroke-dasharray": "0.04 0.04" }),
    mark("line", { x1: 0, x2: 0, y1: -ratio, y2: ratio, ...line, "stroke-dasharray": "0.04 0.04" }),
  );
  const order = norm.tokens.map((_, position) => position).sort((a, b) => Number(a === chosen) - Number(b === chosen));
  for (const position of order) {
    const { place } = norm.tokens[position]!;
    const here = position === chosen;
    svg.append(
      mark("circle", {
        cx: place[0] ?? 0,
        cy: -ratio * (place[1] ?? 0),
        r: here ? 0.075 : 0.035,
        fill: here ? "var(--series-2)" : "var(--series-1)",
        opacity: here ? 1 : 0.6,
      }),
    );
  }
  return svg;
}

export function normCards(trace: TokenTrace, chosen: number): HTMLElement[] {
  return trace.norms.map((norm) => {
    const token = norm.tokens[chosen]!;
    return el(
      "div",
      { "data-norm": norm.name, "data-sigma": token.sigma ?? "" },
      el("h3", {}, short(norm.name)),
      ellipse(norm, chosen),
      el("p", {}, `σ = ${number(token.sigma ?? 0)}`),
      el("p", {}, `removed: ${percent(token.ones_share ?? 0)}`),
    );
  });
}

export const normTable = (trace: TokenTrace, chosen: number): Table => ({
  columns: ["norm", "sigma", "share along all-ones", "radius", "place on axis 1", "place on axis 2"],
  rows: trace.norms.map((norm) => {
    const token = norm.tokens[chosen]!;
    return [
      norm.name,
      token.sigma ?? "",
      token.ones_share ?? "",
      token.radius ?? "",
      token.place[0] ?? "",
      token.place[1] ?? "",
    ];
  }),
});

const answerOf = (head: TokenTrace["heads"][number], position: number): string =>
  head.selectable.includes(position)
    ? "selectable"
    : head.undecided.includes(position)
      ? "undecided"
      : "not selectable";

export const keyTable = (trace: TokenTrace): Table => ({
  columns: ["head", ...trace.tokens.map(({ name }) => spoken(name))],
  rows: trace.heads.map((head) => [
    `layer ${head.layer} head ${head.head}`,
    ...trace.tokens.map((_, position) => answerOf(head, position)),
  ]),
});

export function keys(trace: TokenTrace, chosen: number): HTMLElement {
  const marks: Record<string, string> = { selectable: "●", undecided: "?", "not selectable": "○" };
  const { rows } = keyTable(trace);
  return el(
    "table",
    { class: "small trace-keys" },
    el("caption", {}, "● some query selects the key, ○ none does"),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, "head"),
        ...trace.tokens.map((token, position) =>
          el(
            "th",
            { scope: "col", "data-chosen": position === chosen, "aria-label": spoken(token.name ?? named(token)) },
            named(token),
          ),
        ),
      ),
    ),
    el(
      "tbody",
      {},
      ...rows.map(([head, ...answers]) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, String(head)),
          ...answers.map((answer) =>
            el("td", {}, el("span", { role: "img", "aria-label": String(answer) }, marks[answer] ?? "")),
          ),
        ),
      ),
    ),
  );
}

export function bars({ predictions }: TokenTrace, chosen: number, most: number): HTMLElement[] {
  return predictions[chosen]!.likeliest.slice(0, most).map(({ token, name, probability, reach }) => {
    const bar = el("span", { class: "bar" });
    bar.style.width = `${(100 * (probability ?? 0)).toFixed(2)}%`;
    return el(
      "div",
      { role: "listitem" },
      el("b", {}, named({ token, name })),
      bar,
      el("span", {}, percent(probability ?? 0)),
      el("span", {}, reach === "yes" ? "in reach" : reach === "no" ? "out of reach" : "not decided"),
    );
  });
}

export const nextTable = ({ predictions }: TokenTrace, chosen: number): Table => ({
  columns: ["token", "logit", "probability", "in reach"],
  rows: predictions[chosen]!.likeliest.map(({ name, logit, probability, reach }) => [
    spoken(name),
    logit ?? "",
    probability ?? "",
    reach ?? "",
  ]),
});

export function readout(trace: TokenTrace, chosen: number): string {
  const { likeliest, next } = trace.predictions[chosen]!;
  const first = likeliest[0]!;
  const word = trace.tokens[0]?.name === "\n";
  const written = trace.tokens
    .slice(word ? 1 : 0, chosen + 1)
    .map((token) => (token.name === null ? `${named(token)} ` : spoken(token.name)));
  const after = written.length === 0 ? "At the start of a word" : `After “${written.join("").trim()}”`;
  const quoted = (token: { token: number; name: string | null }) =>
    `“${token.name === null ? named(token) : spoken(token.name)}”`;
  const follows =
    next === null
      ? ""
      : ` ${quoted(next)}, which follows, has ${percent(next.probability ?? 0)} and rank ${next.rank + 1}.`;
  return `${after} the model expects ${quoted(first)} with ${percent(first.probability ?? 0)}.${follows}`;
}
