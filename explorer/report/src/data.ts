import type { Activations } from "../../generated/activations";
import type { Attribute } from "../../generated/attribute";
import type { Charts } from "../../generated/charts";
import type { Compare } from "../../generated/compare";
import type { Ranges } from "../../generated/ranges";
import type { Report } from "../../generated/report";
import type { TokenTrace } from "../../generated/token-trace";
import { parseDocument } from "../../shared/printable";

const read = (id: string): unknown => parseDocument(document.getElementById(id)?.textContent ?? "null");

/** The comparison and charts of this page, or null if it has another result. */
export function comparisonData(): { comparison: Compare; charts: Charts } | null {
  const comparison = read("report-data") as Compare | null;
  if (comparison?.schema !== "normscope.compare/1") return null;
  return { comparison, charts: (read("chart-data") as Charts | null) ?? [] };
}

/** The ranges and charts of this page, or null if it has another result. */
export function rangesData(): { ranges: Ranges; charts: Charts } | null {
  const ranges = read("report-data") as Ranges | null;
  if (ranges?.schema !== "normscope.ranges/1") return null;
  return { ranges, charts: (read("chart-data") as Charts | null) ?? [] };
}

/** The text through a model and charts of this page, or null if it has another result. */
export function traceData(): { trace: TokenTrace; charts: Charts } | null {
  const trace = read("report-data") as TokenTrace | null;
  if (trace?.schema !== "normscope.token-trace/1") return null;
  return { trace, charts: (read("chart-data") as Charts | null) ?? [] };
}

/** The logit split by component and charts of this page, or null if it has another result. */
export function attributeData(): { result: Attribute; charts: Charts } | null {
  const result = read("report-data") as Attribute | null;
  if (result?.schema !== "normscope.attribute/1") return null;
  return { result, charts: (read("chart-data") as Charts | null) ?? [] };
}

/** The report and charts of this page, or null where none was filled in. */
export function pageData(): { report: Report; charts: Charts } | null {
  const report = read("report-data") as Report | null;
  if (report?.schema !== "normscope.report/1") return null;
  return { report, charts: (read("chart-data") as Charts | null) ?? [] };
}

/** The activations and their charts, or null if the page has none. */
export function activationData(): { activations: Activations; charts: Charts } | null {
  const data = read("activation-data") as { document: Activations; charts: Charts } | null;
  return data === null ? null : { activations: data.document, charts: data.charts };
}
