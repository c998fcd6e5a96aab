import type { Chart } from "../../generated/charts";
import { showCharts } from "./charts";
import type { Report } from "../../generated/report";
import { slot } from "../../shared/dom";
import { embeddingTable } from "./embedding";
import { divided, showCauses } from "./causes";
import { showFindings } from "./findings";
import { showHeadsAndVocabulary } from "./heads";
import { showNorms } from "./norms";
import type { Beside } from "./norms";
import { showOverview } from "./overview";
import { showRanges } from "./ranges";

/** Opens the part of the appendix that holds `element`. */
export function openAround(element: Element): void {
  const part = element.querySelector<HTMLDetailsElement>(":scope > details.part") ?? element.closest("details.part");
  if (part instanceof HTMLDetailsElement) part.open = true;
}

/** Everything but the verdict and the causes is an appendix, closed until a link or the reader opens it; paper has all. */
function closeAppendix(signal: AbortSignal | undefined): void {
  const parts = [...document.querySelectorAll<HTMLDetailsElement>("details.part")];
  const all = (open: boolean) => () => {
    for (const part of parts) part.open = open;
  };
  all(false)();
  addEventListener("beforeprint", all(true), signal === undefined ? {} : { signal });
}

export interface Shown {
  /** Draws the figures again, in another theme. */
  redraw: () => void;
  /** Opens the row of that norm and brings it into view. */
  reveal: (index: number) => void;
}

export interface Place {
  /** What a norm's row shows beside the numbers of the report. */
  beside?: Beside | undefined;
  /** Ends when the report leaves the page. */
  signal?: AbortSignal;
}

/** Fills the report's sections, which sections.html holds, wherever they stand. */
export function showReport(report: Report, charts: Chart[], { beside, signal }: Place = {}): Shown {
  showOverview(report);
  showFindings(report);
  const { ofCauses, others } = divided(charts);
  const redrawCauses = showCauses(report, ofCauses, { beside, signal });
  const { redraw } = showCharts(others, { before: ofCauses.length, signal });
  const tokens = embeddingTable(report);
  if (tokens !== null) (document.getElementById("chart-features") ?? slot("charts-body").lastChild)?.after(tokens);
  showHeadsAndVocabulary(report);
  showRanges(report.ranges);
  const { reveal } = showNorms(report.norms, beside);
  closeAppendix(signal);
  return {
    redraw: () => {
      redrawCauses();
      redraw();
    },
    reveal: (index) => {
      openAround(slot("norms-body"));
      reveal(index);
    },
  };
}
