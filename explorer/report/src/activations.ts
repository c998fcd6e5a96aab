import type { Activations, Norm as ObservedNorm } from "../../generated/activations";
import type { Charts } from "../../generated/charts";
import type { Norm, Report } from "../../generated/report";
import { definitions, el, name, normLink, slot, table } from "../../shared/dom";
import { atMost, count, measured, number, percent, plural, unknown } from "../../shared/format";
import { showCharts } from "./charts";

type InModel = NonNullable<Activations["in_model"]>;
type Next = NonNullable<InModel["next"]>;

/** The norm of the report that a module is: the names are equal, or one is the end of the other. */
function normOf(norms: Norm[], module: string): Norm | undefined {
  const exact = norms.find((norm) => norm.name === module);
  if (exact !== undefined) return exact;
  const ends = norms.filter(
    (norm) => module.endsWith(`.${norm.name}`) || (module !== "" && norm.name.endsWith(`.${module}`)),
  );
  return ends.length === 1 ? ends[0] : undefined;
}

/** The largest output that was seen, and the one that the report proves to be the largest of any input. */
function largestOutput(seen: number | null, norm: Norm | undefined, ranges: Report["ranges"]): string {
  const proved = ranges.norms.find((range) => range.name === norm?.name)?.output;
  return proved === undefined ? measured(seen) : `${measured(seen)} of ${atMost(proved.largest)}`;
}

function normTable(observed: ObservedNorm[], { norms, ranges }: Report): HTMLElement {
  return el(
    "div",
    { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Table of activations" },
    table(
      "Statistics of the rows that entered each norm.",
      [
        "norm",
        "rows",
        "deviation, median",
        "5 % to 95 %",
        "projected away",
        "frozen scale",
        "dimension",
        "largest output, of proved",
      ],
      observed.map((norm) => {
        const known = normOf(norms, norm.name);
        return [
          known === undefined ? name(norm.name) : normLink(known.index, norm.name),
          count(norm.rows),
          measured(norm.sigma?.median ?? null),
          norm.sigma === null ? unknown : `${measured(norm.sigma.low)} to ${measured(norm.sigma.high)}`,
          percent(norm.ones_share),
          percent(norm.frozen_scale_error),
          norm.sampled < 2 ? unknown : `${measured(norm.used_dimension)} of ${measured(norm.available_dimension)}`,
          largestOutput(norm.largest_output, known, ranges),
        ];
      }),
      [1, 2, 3, 4, 5, 6, 7],
    ),
  );
}

const massive = (observed: ObservedNorm[]): { norm: ObservedNorm; share: number; coordinate: number } | null => {
  let best: { norm: ObservedNorm; share: number; coordinate: number } | null = null;
  for (const norm of observed) {
    const top = norm.features[0];
    if (top !== undefined && (best === null || top.share > best.share)) {
      best = { norm, share: top.share, coordinate: top.coordinate };
    }
  }
  return best;
};

function nextFacts(next: Next): [string, Node | string][] {
  return [
    [
      "Frozen scale at the logits",
      `${number(next.mean_divergence)} nats of KL divergence on average, ${number(next.most_divergence)} at most; ` +
        `the likeliest token changes in ${percent(next.changed)} of ${plural(next.rows, "row")}`,
    ],
    [
      "Likely next tokens",
      `${count(next.reachable)} of ${count(next.tokens)} can be the most likely one at all, ` +
        `${count(next.unreachable)} cannot, ${count(next.undecided)} undecided`,
    ],
  ];
}

function tokenTable(next: Next): HTMLElement | null {
  const list = next.list.filter((token) => token.answer !== "yes");
  if (list.length === 0) return null;
  return table(
    "Likely next tokens that are never the most likely one, or not known to be.",
    ["token", "name", "rows", "can lead", "lead at most"],
    list.map((token) => [
      String(token.token),
      token.name === null ? unknown : name(JSON.stringify(token.name)),
      count(token.rows),
      token.answer,
      atMost(token.lead_at_most, number),
    ]),
    [0, 2, 4],
  );
}

/** Fills the section of activations; `before` is the number of figures above it. */
export function showActivations(
  { activations, charts }: { activations: Activations; charts: Charts },
  report: Report,
  before: number,
): { redraw: () => void } {
  slot("activations").hidden = false;
  slot("activations-link").hidden = false;
  const body = slot("activations-body");
  const rows = Math.max(0, ...activations.norms.map((norm) => norm.rows));
  body.append(
    el(
      "p",
      {},
      `Statistics of ${count(rows)} watched rows in ${plural(activations.norms.length, "norm")} of ${activations.model}.`,
    ),
  );
  const facts: [string, Node | string][] = [];
  const top = massive(activations.norms);
  if (top !== null) {
    facts.push([
      "Largest feature",
      `coordinate ${top.coordinate} carries ${percent(top.share)} of |x|² in ${top.norm.name}`,
    ]);
  }
  const within = activations.in_model;
  if (within?.next) facts.push(...nextFacts(within.next));
  else if (within) facts.push(["Logits", within.next_refused]);
  body.append(definitions(facts));
  const tokens = within?.next ? tokenTable(within.next) : null;
  if (tokens !== null) body.append(tokens);
  const figures = el("div");
  body.append(figures);
  const shown = showCharts(charts, { host: figures, before });
  body.append(normTable(activations.norms, report));
  if (activations.not_understood.length > 0) {
    body.append(
      el("h3", {}, "Not measured, or under an assumption"),
      el("ul", {}, ...activations.not_understood.map((entry) => el("li", {}, name(entry.name), `: ${entry.reason}`))),
    );
  }
  return shown;
}
