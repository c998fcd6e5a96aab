import { showActivations } from "./activations";
import { showAttributePage } from "./attribute";
import { showComparison } from "./comparison";
import { activationData, attributeData, comparisonData, pageData, rangesData, traceData } from "./data";
import { explorerOf, geometryLink } from "./explorer_link";
import { showRangesPage } from "./ranges";
import type { Norm } from "../../generated/report";
import { slot } from "../../shared/dom";
import { openAround, showReport } from "./report";
import { startTheme } from "../../shared/theme";
import { showTracePage } from "./trace";

/** Links open the part of the page that they lead to, and those to a norm its row. */
function followLinks(reveal: (index: number) => void): void {
  const follow = () => {
    const index = /^#norm-(\d+)$/.exec(location.hash)?.[1];
    if (index !== undefined) return reveal(Number(index));
    const place = document.getElementById(location.hash.slice(1));
    if (place === null) return;
    openAround(place);
    place.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest<HTMLAnchorElement>('a[href^="#"]');
    // Following the link again must open what it leads to again, though the address does not change.
    if (link !== null && link.hash === location.hash) follow();
  });
  follow();
}

function start(): void {
  // The theme listens for printing before the charts do, so that they are drawn once, for paper.
  let redraw = () => {};
  const compared = comparisonData();
  const ranged = rangesData();
  const traced = traceData();
  const attributed = attributeData();
  if (compared !== null || ranged !== null || traced !== null || attributed !== null) {
    startTheme(() => redraw());
    if (compared !== null) redraw = showComparison(compared.comparison, compared.charts).redraw;
    if (ranged !== null) redraw = showRangesPage(ranged.ranges, ranged.charts).redraw;
    if (traced !== null) redraw = showTracePage(traced.trace, traced.charts).redraw;
    if (attributed !== null) redraw = showAttributePage(attributed.result, attributed.charts).redraw;
    slot("print").addEventListener("click", () => print());
    document.documentElement.dataset["ready"] = "";
    return;
  }
  const data = pageData();
  if (data === null) {
    slot("model-line").textContent = "This page holds no report; `normscope report MODEL` writes one.";
    return;
  }
  startTheme(() => redraw());
  const explorer = explorerOf(new URL(location.href));
  const beside = explorer === null ? undefined : (norm: Norm) => geometryLink(norm, explorer);
  const shown = showReport(data.report, data.charts, { beside });
  const watched = activationData();
  const live = watched === null ? null : showActivations(watched, data.report, data.charts.length);
  redraw = () => {
    shown.redraw();
    live?.redraw();
  };
  followLinks(shown.reveal);
  slot("print").addEventListener("click", () => print());
  document.documentElement.dataset["ready"] = "";
}

try {
  start();
} catch (error) {
  slot("model-line").textContent = `This report could not be shown in full: ${String(error)}`;
  throw error;
}
