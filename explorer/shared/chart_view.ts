import { parse, View, Warn } from "vega";
import type { Loader } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile } from "vega-lite";
import type { TopLevelSpec } from "vega-lite";
import type { Chart } from "../generated/charts";
import { chartConfig } from "./chart_theme";
import { pngOf, save, svgOf } from "./files";
import { showTooltip } from "./tooltip";

const refuse = (): Promise<never> => Promise.reject(new Error("a report loads nothing from outside itself"));
const loader = { load: refuse, sanitize: refuse, http: refuse, file: refuse } as unknown as Loader;

/** Those that fit the chart of a host to its width. */
const observers = new WeakMap<HTMLElement, ResizeObserver>();

/** Draws a chart into `host` in the page's present theme. */
export async function drawChart(chart: Chart, host: HTMLElement): Promise<View> {
  const { spec } = compile(chart.spec as unknown as TopLevelSpec, { config: chartConfig() });
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
  // A narrower figure's legend takes more rows, which a layout for the width before cuts off. Vega has given the
  // figure its new width when the observer is called; a listener on that width would call itself.
  let width = -1;
  const observer = new ResizeObserver(() => {
    if (host.clientWidth === width || !host.isConnected) return;
    width = host.clientWidth;
    void view.resize().runAsync();
  });
  observer.observe(host);
  observers.get(host)?.disconnect();
  observers.set(host, observer);
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
