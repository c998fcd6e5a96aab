import type { Chart } from "../../generated/charts";
import type { Cause, Norm, Report } from "../../generated/report";
import { command, el, name, normLink, slot, table } from "../../shared/dom";
import { measured, plural } from "../../shared/format";
import { showCharts } from "./charts";

/** The charts of causes, which stand beside them, and the others. */
export function divided(charts: Chart[]): { ofCauses: Chart[]; others: Chart[] } {
  const isOfCause = ({ id }: Chart) => id.startsWith("cause-");
  return { ofCauses: charts.filter(isOfCause), others: charts.filter((chart) => !isOfCause(chart)) };
}

/** Causes whose pictures the core draws; the others follow as a list. */
const first = 4;

/** What was measured; where, too, if that is at several norms, since the cause's title names a single one. */
function numbers({ norms }: Report, { numbers }: Cause): HTMLElement | null {
  if (numbers.length === 0) return null;
  const places = [...new Set(numbers.map(({ norm_index }) => norm_index))].map((at) =>
    at === null ? null : norms[at]!,
  );
  const several = places.length > 1;
  const rows = numbers.map(({ name, text, usual, within, of, norm_index }) => {
    const norm = norm_index === null ? undefined : norms[norm_index];
    const where = norm === undefined ? "" : normLink(norm.index, norm.name);
    return [name, text, `${usual} (${within} of ${of})`, ...(several ? [where] : [])];
  });
  const heads = ["Number", "Here", "Usual (of models)", ...(several ? ["Where"] : [])];
  const [norm] = places;
  return el(
    "div",
    { class: "numbers" },
    el("div", { class: "block", tabindex: 0, role: "group", "aria-label": "Its numbers" }, table("", heads, rows)),
    several || !norm ? null : el("p", {}, "In the table of norms: ", normLink(norm.index, norm.name)),
  );
}

const readers = ({ readers }: Cause): HTMLElement | null =>
  readers.length === 0
    ? null
    : el(
        "p",
        {},
        "It is read most by ",
        readers
          .map((reader) => `${reader.name} (${measured(reader.over_mean)} times the mean of coordinates)`)
          .join(" and "),
        ".",
      );

export interface CausesPlace {
  beside?: ((norm: Norm) => HTMLElement | null) | undefined;
  signal?: AbortSignal | undefined;
}

/** Fills the verdict and the causes with their pictures; returns how to draw these again. */
export function showCauses(report: Report, charts: Chart[], { beside, signal }: CausesPlace): () => void {
  slot("verdict").textContent = report.verdict;
  const redraws: (() => void)[] = [];
  let drawn = 0;
  const items = report.causes.slice(0, first).map((cause, index) => {
    const norm = cause.norm_index === null ? undefined : report.norms[cause.norm_index];
    const picture = el("div", { class: "picture" });
    const words = el(
      "div",
      { class: "words" },
      numbers(report, cause),
      readers(cause),
      cause.why === "" ? null : el("p", {}, cause.why),
      cause.advice === "" ? null : el("p", {}, el("b", {}, "What to do. "), cause.advice),
      norm === undefined || beside === undefined ? null : beside(norm),
      command(cause.reproduce),
    );
    const chart = charts.find(({ id }) => id === cause.chart);
    if (chart !== undefined) {
      redraws.push(showCharts([chart], { host: picture, before: drawn, signal }).redraw);
      drawn += 1;
    }
    return el("li", { id: `about-cause-${index + 1}` }, el("h3", { dir: "auto" }, cause.title), picture, words);
  });
  slot("causes").append(el("ol", { class: "causes" }, ...items));
  const rest = report.causes.slice(first);
  if (rest.length > 0) {
    slot("causes").append(
      el(
        "details",
        {},
        el("summary", {}, plural(rest.length, "smaller one")),
        el("ul", { class: "smaller" }, ...rest.map((cause) => el("li", { dir: "auto" }, name(cause.title)))),
      ),
    );
  }
  return () => {
    for (const redraw of redraws) redraw();
  };
}

/** The verdict and what is unusual, in words alone. */
export const causesInWords = ({ verdict, causes }: Report): HTMLElement =>
  el(
    "div",
    { class: "in-words" },
    el("p", { class: "verdict", dir: "auto" }, verdict),
    el("ul", {}, ...causes.slice(0, first).map(({ title }) => el("li", { dir: "auto" }, title))),
  );
