import { showCharts } from "./charts";
import { pageData } from "./data";
import { slot } from "../../shared/dom";
import { showFindings } from "./findings";
import { showHeadsAndVocabulary } from "./heads";
import { showNorms } from "./norms";
import { showOverview } from "./overview";
import { startTheme } from "../../shared/theme";

function start(): void {
  const data = pageData();
  if (data === null) {
    slot("model-line").textContent = "This page holds no report; `normscope report MODEL` writes one.";
    return;
  }
  const { report, charts } = data;
  showOverview(report);
  showFindings(report.findings);
  // The theme listens for printing before the charts do, so that they are drawn once, for paper.
  let redraw = () => {};
  startTheme(() => redraw());
  ({ redraw } = showCharts(charts));
  showHeadsAndVocabulary(report.heads, report.vocabulary);
  showNorms(report.norms);
  slot("print").addEventListener("click", () => print());
  document.documentElement.dataset["ready"] = "";
}

try {
  start();
} catch (error) {
  slot("model-line").textContent = `This report could not be shown in full: ${String(error)}`;
  throw error;
}
