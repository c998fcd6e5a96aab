import { parse, View, Warn } from "vega";
import type { Loader } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile } from "vega-lite";
import type { TopLevelSpec } from "vega-lite";
import type { Chart } from "../generated/charts";
import { chartConfig } from "./chart_theme";
import { pngOf, save, svgOf } from "./files";
import { color } from "./theme";
import { showTooltip } from "./tooltip";

const refuse = (): Promise<never> => Promise.reject(new Error("a report loads nothing from outside itself"));
const loader = { load: refuse, sanitize: refuse, http: refuse, file: refuse } as unknown as Loader;

/** What ends the fitting of a host's chart to its width. */
const fitted = new WeakMap<HTMLElement, AbortController>();

/** The core marks steps of a chart in firebrick, which dark paper would swallow; the page has a red of each theme. */
function inTheme(part: unknown, red: string): unknown {
  if (Array.isArray(part)) return part.map((one) => inTheme(one, red));
  if (typeof part !== "object" || part === null) return part === "firebrick" ? red : part;
  const entries = Object.entries(part).map(([key, value]): [string, unknown] => [
    key,
    // Data has no colours, and may be long.
    ["values", "datasets"].includes(key) ? value : inTheme(value, red),
  ]);
  return Object.fromEntries(entries);
}

/** Draws a chart into `host` in the page's present theme. */
export async function drawChart(chart: Chart, host: HTMLElement): Promise<View> {
  const { spec } = compile(inTheme(chart.spec, color("--series-6")) as TopLevelSpec, { config: chartConfig() });
  // The interpreter walks Vega's expressions instead of compiling them, which the page's policy forbids.
  const view = new View(parse(spec, {}, { ast: true }), {
    loader,
    expr: expressionInterpreter,
    renderer: "svg",
    logLevel: Warn,
    container: host,
    hover: true,
    tooltip: showTooltip,
  });
  await view.runAsync();
  // When the window changes, if only in height as a phone's bar makes it, Vega lays legends and labels out for the width
  // with axes and then draws them for the narrower one without, which cuts some off. A second layout is right. The
  // observer tells of widths that change without the window.
  fitted.get(host)?.abort();
  const fitting = new AbortController();
  fitted.set(host, fitting);
  const fit = () => {
    if (host.isConnected) void view.resize().runAsync();
    else fitting.abort();
  };
  let width = -1;
  const observer = new ResizeObserver(() => {
    if (host.clientWidth === width) return;
    width = host.clientWidth;
    fit();
  });
  observer.observe(host);
  fitting.signal.addEventListener("abort", () => observer.disconnect());
  addEventListener("resize", fit, { signal: fitting.signal });
  return view;
}

/** True where a chart's own data is an empty list. */
export function isEmpty(chart: Chart): boolean {
  const data = chart.spec["data"] as { values?: unknown } | undefined;
  return Array.isArray(data?.values) && data.values.length === 0;
}

/** Offers the chart as drawn for download. */
export async function saveChart(view: View, id: string, format: "png" | "svg"): Promise<void> {
  const blob = format === "svg" ? svgOf(await view.toSVG()) : pngOf(await view.toCanvas(2));
  if (blob !== null) save(blob, `normscope-${id}.${format}`);
}
