import type { Config } from "vega-lite";
import { color } from "./theme";

/** Vega-Lite's configuration in the colours and type of the page as it is now. */
export function chartConfig(): Config {
  const ink = color("--ink");
  const muted = color("--muted");
  const rule = color("--rule");
  const font = getComputedStyle(document.documentElement).getPropertyValue("--sans").trim();
  const series = [1, 2, 3, 4, 5, 6, 7, 8].map((i) => color(`--series-${i}`));
  const mark = series[0] ?? ink;
  const ramp = [color("--ramp-low"), color("--ramp-middle"), color("--ramp-high")];
  return {
    // The figure has the description; without this, screen readers would read its marks one by one.
    aria: false,
    background: color("--paper"),
    font,
    padding: 2,
    view: { stroke: null },
    mark: { color: mark, aria: false },
    rule: { color: muted },
    text: { color: ink },
    line: { strokeWidth: 1.5 },
    point: { filled: true, size: 40 },
    axis: {
      labelColor: muted,
      titleColor: ink,
      labelFontSize: 11,
      titleFontSize: 12,
      titleFontWeight: "normal",
      gridColor: rule,
      gridOpacity: 0.5,
      domainColor: muted,
      tickColor: muted,
      tickSize: 4,
      titlePadding: 8,
      labelLimit: 140,
    },
    axisX: { grid: false },
    // Marks at the axis do not cover its labels.
    axisY: { domain: false, ticks: false, labelPadding: 6 },
    legend: {
      symbolOpacity: 1,
      labelColor: muted,
      titleColor: ink,
      labelFontSize: 11,
      titleFontSize: 12,
      titleFontWeight: "normal",
      orient: "top",
      direction: "horizontal",
      labelLimit: 160,
      columns: { signal: "max(1, floor(width / 170))" },
    },
    header: { labelColor: muted, titleColor: ink },
    title: { color: ink, fontWeight: "normal" },
    range: {
      category: series,
      // Points and lines would not show on the page in the low end of a heat map.
      ramp: [color("--ramp-line"), color("--ramp-high")],
      heatmap: ramp,
      ordinal: ramp,
      diverging: [color("--series-2"), color("--rule"), color("--series-1")],
    },
  };
}
