import type { Chart } from "../../generated/charts";
import type { Report } from "../../generated/report";
import { el, name, slot } from "../../shared/dom";
import { plural } from "../../shared/format";
import { showCharts } from "./charts";
import { causesInWords, divided } from "./causes";

export interface Side {
  report: Report;
  charts: Chart[];
}

/** The figures of both with the same question next to each other, then those that only the second one has. */
export function pairedCharts(sides: [Side, Side]): Chart[] {
  const panel = (side: 0 | 1, chart: Chart): Chart => {
    const of = `${side + 1}: ${sides[side].report.model.name}`;
    return { ...chart, id: `${chart.id}-${side + 1}`, panel: chart.panel === undefined ? of : `${of}, ${chart.panel}` };
  };
  // Causes are told in words: those of two models need not be of the same kind.
  const [one, other] = sides.map((side) => ({ ...side, charts: divided(side.charts).others })) as [Side, Side];
  const ids = new Set(one.charts.map(({ id }) => id));
  return [
    ...one.charts.flatMap((chart) => [
      panel(0, chart),
      ...other.charts.filter(({ id }) => id === chart.id).map((same) => panel(1, same)),
    ]),
    ...other.charts.filter(({ id }) => !ids.has(id)).map((chart) => panel(1, chart)),
  ];
}

/** What one of two reports begins with. */
const beginning = ({ report }: Side, number: number): HTMLElement =>
  el(
    "div",
    { class: "side" },
    el("h3", {}, `${number}: `, name(report.model.name)),
    el(
      "p",
      { class: "muted" },
      [report.model.title, plural(report.norms.length, "norm"), report.model.format]
        .filter((part) => part !== "")
        .join(" · "),
    ),
    causesInWords(report),
  );

/** Fills #pair with two reports side by side. */
export function showPair(sides: [Side, Side], signal?: AbortSignal): { redraw: () => void } {
  const figures = el("div");
  slot("pair").append(el("div", { class: "panels" }, beginning(sides[0], 1), beginning(sides[1], 2)), figures);
  return showCharts(pairedCharts(sides), { host: figures, signal });
}
