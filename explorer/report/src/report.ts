import type { Chart } from "../../generated/charts";
import { showCharts } from "./charts";
import type { Report } from "../../generated/report";
import { slot } from "../../shared/dom";
import { embeddingTable } from "./embedding";
import { showFindings } from "./findings";
import { showHeadlines } from "./headlines";
import { showHeadsAndVocabulary } from "./heads";
import { showNorms } from "./norms";
import type { Beside } from "./norms";
import { showOverview } from "./overview";
import { showRanges } from "./ranges";

export interface Shown {
  /** Draws the figures again, in another theme. */
  redraw: () => void;
  /** Opens the row of that norm and brings it into view. */
  reveal: (index: number) => void;
}

export interface Place {
  /** What a norm's row shows beside the numbers of the report. */
  beside?: Beside;
  /** Ends when the report leaves the page. */
  signal?: AbortSignal;
}

/** Fills the report's sections, which sections.html holds, wherever they stand. */
export function showReport(report: Report, charts: Chart[], { beside, signal }: Place = {}): Shown {
  showOverview(report);
  showFindings(report);
  const { redraw } = showCharts(charts, { signal });
  showHeadlines(report);
  const tokens = embeddingTable(report);
  if (tokens !== null) (document.getElementById("chart-features") ?? slot("charts-body").lastChild)?.after(tokens);
  showHeadsAndVocabulary(report);
  showRanges(report.ranges);
  const { reveal } = showNorms(report.norms, beside);
  return { redraw, reveal };
}
