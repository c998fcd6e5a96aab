import type { Headline, Report } from "../../generated/report";
import { el, normLink, slot } from "../../shared/dom";

/** The figure that shows what a headline is about, or the section. */
const places: Record<Headline["topic"], string> = {
  axes: "chart-longest-axis",
  "null direction": "chart-null-direction",
  features: "chart-gain-map",
  bias: "chart-shift",
  heads: "chart-head-spread",
  tokens: "heads",
};

function item(report: Report, { topic, norm_index: index, number, of, why }: Headline, links: boolean): HTMLElement {
  const norm = index === null ? undefined : report.norms[index];
  const place = places[topic];
  const shown = links
    ? [
        norm === undefined ? null : normLink(norm.index, norm.name),
        document.getElementById(place) === null ? null : el("a", { href: `#${place}` }, "See it"),
      ].filter((link) => link !== null)
    : [];
  return el(
    "li",
    {},
    el("p", { class: "value", dir: "auto" }, number),
    el("p", { class: "of", dir: "auto" }, of),
    el("p", { class: "why", dir: "auto" }, why),
    shown.length === 0 ? null : el("p", { class: "about" }, ...shown),
  );
}

/** What a report begins with; `links` lead to its norms and figures, which are then there. */
export const headlineList = (report: Report, links: boolean): HTMLElement =>
  el("ol", { class: "headlines" }, ...report.headlines.map((headline) => item(report, headline, links)));

/** Fills the report's first lines; call it when the figures are there, to which they link. */
export const showHeadlines = (report: Report): void => slot("headlines").append(headlineList(report, true));
