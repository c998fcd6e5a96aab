import type { View } from "vega";
import type { Chart } from "../generated/charts";
import { button, el } from "../shared/dom";
import { pngOf, save, svgOf } from "../shared/files";

/** A rectangle of numbers as CSV: a head, then rows. */
export interface Table {
  columns: string[];
  rows: (number | string)[][];
}

const cell = (value: number | string): string =>
  typeof value === "number" ? String(value) : /[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;

export const csv = ({ columns, rows }: Table): string =>
  [columns, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";

interface FigureParts {
  /** Names the saved files. */
  id: string;
  content: HTMLElement;
  caption?: string | undefined;
  /** The contents of the PNG file; `table` is that of the CSV file. */
  png?: () => Promise<Blob | null>;
  svg?: () => Promise<string>;
  table?: (() => Table) | undefined;
}

/** A figure with its caption and the buttons that save it. */
export function figure(parts: FigureParts): HTMLElement {
  const saves: [string, (() => Promise<Blob | null>) | undefined][] = [
    ["png", parts.png],
    ["svg", parts.svg && (async () => svgOf(await parts.svg!()))],
    ["csv", parts.table && (() => Promise.resolve(new Blob([csv(parts.table!())], { type: "text/csv" })))],
  ];
  const buttons = saves.flatMap(([format, make]) =>
    make === undefined
      ? []
      : [
          button(
            format.toUpperCase(),
            () => void make().then((blob) => blob && save(blob, `normscope-${parts.id}.${format}`)),
            { class: "quiet", "aria-label": `Save ${parts.id} as ${format.toUpperCase()}` },
          ),
        ],
  );
  return el(
    "figure",
    { id: `figure-${parts.id}`, "data-state": "ready" },
    parts.content,
    el(
      "figcaption",
      {},
      el("p", {}, parts.caption ?? ""),
      el("span", { class: "actions" }, ...buttons),
    ),
  );
}

/** Width of an axis and its labels in pixels. */
const axisRoom = 64;

/** `spec` with the width of its container; of stacked charts, each gets that width. */
function fitted(spec: Record<string, unknown>, room: number): Record<string, unknown> {
  const parts = spec["vconcat"];
  if (!Array.isArray(parts)) return { ...spec, width: "container" };
  const width = Math.max(120, room - axisRoom);
  return { ...spec, vconcat: parts.map((part: object) => ({ ...part, width })) };
}

/** A container for charts of the core, redrawn when the core returns another one. */
export class ChartFigure {
  readonly element: HTMLElement;
  private readonly host: HTMLElement;
  private view: View | null = null;
  private generation = 0;
  private disposed = false;
  /** The chart on show, and the width that its parts were given. */
  private shown: { spec: Record<string, unknown>; description: string; width: number } | null = null;
  /** Data of the chart that are newer than its specification. */
  private readonly updates = new Map<string, object[]>();
  private readonly sizes = new ResizeObserver(() => this.refit());

  constructor(
    readonly id: string,
    table?: () => Table,
    caption?: string,
  ) {
    this.host = el("div", { class: "plot", role: "img", "aria-label": "A chart, not drawn yet." });
    this.sizes.observe(this.host);
    this.element = figure({
      id,
      content: el("div", { class: "plot-scroll" }, this.host),
      caption,
      png: async () => {
        const canvas = await this.view?.toCanvas(2);
        return canvas === undefined ? null : pngOf(canvas);
      },
      svg: async () => (await this.view?.toSVG()) ?? "",
      table,
    });
  }

  /** Draws `spec`; of several calls in a row only the last one is seen. */
  draw(spec: Record<string, unknown>, description: string): Promise<void> {
    this.updates.clear();
    return this.render(spec, description);
  }

  /** Vega itself fits a chart to its container, but not one of several parts. */
  private refit(): void {
    const { shown, host } = this;
    if (shown === null || !("vconcat" in shown.spec) || [0, shown.width].includes(host.clientWidth)) return;
    void this.render(shown.spec, shown.description);
  }

  private async render(spec: Record<string, unknown>, description: string): Promise<void> {
    const generation = (this.generation += 1);
    if (this.disposed) return;
    this.host.setAttribute("aria-label", description);
    const { drawChart } = await import("../shared/chart_view");
    if (generation !== this.generation) return;
    this.shown = { spec, description, width: this.host.clientWidth };
    const chart: Chart = {
      id: this.id,
      question: "",
      answer: "",
      description,
      spec: fitted(spec, this.host.clientWidth),
    };
    const old = this.view;
    // Drawn invisibly in its container, so that it gets the container's width.
    const place = el("div", { class: "plot coming", "aria-hidden": "true" });
    this.host.append(place);
    const view = await drawChart(chart, place);
    for (const [name, values] of this.updates) view.data(name, values);
    await view.runAsync();
    if (generation !== this.generation) {
      view.finalize();
      place.remove();
      return;
    }
    place.classList.remove("coming");
    this.host.replaceChildren(place);
    old?.finalize();
    this.view = view;
    this.element.dataset["drawn"] = String(Number(this.element.dataset["drawn"] ?? 0) + 1);
  }

  /** Frees the chart; a drawing under way or asked for later is dropped. */
  dispose(): void {
    this.disposed = true;
    this.sizes.disconnect();
    this.generation += 1;
    this.view?.finalize();
    this.view = null;
  }

  /** New data for a data set of the drawn chart, without drawing the axes anew. */
  async update(name: string, values: object[]): Promise<void> {
    if (this.view === null) return;
    this.updates.set(name, values);
    this.view.data(name, values);
    await this.view.runAsync();
  }
}
