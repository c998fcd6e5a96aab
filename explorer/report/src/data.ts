import type { Charts } from "../../generated/charts";
import type { Report } from "../../generated/report";

const read = (id: string): unknown => JSON.parse(document.getElementById(id)?.textContent ?? "null");

/** The report and charts of this page, or null where none was filled in. */
export function pageData(): { report: Report; charts: Charts } | null {
  const report = read("report-data") as Report | null;
  if (report?.schema !== "normscope.report/1") return null;
  return { report, charts: (read("chart-data") as Charts | null) ?? [] };
}
