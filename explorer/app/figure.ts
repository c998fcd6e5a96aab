import type { View } from "vega";
import type { Chart } from "../generated/charts";
import { button, el } from "../shared/dom";
import { pngOf, save, svgOf } from "../shared/files";
import { color } from "../shared/theme";

/** A rectangle of numbers as CSV: a head, then rows. */
export interface Table {
  columns: string[];
  rows: (number | string)[][];
}

const cell = (value: number | string): string =>
  typeof value === "number" ? String(value) : /[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;

export const csv = ({ columns, rows }: Table): string =>
  [columns, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";

/** The figures that have a poster, a picture of their first frame: `posters/ID.webp` of the site. */
declare const POSTERS: string[] | undefined;
const posters = new Set(typeof POSTERS === "undefined" ? [] : POSTERS);

interface FigureParts {
  /** Names the saved files. */
  id: string;
  content: HTMLElement;
  caption?: string | undefined;
  /** The contents of the PNG file; `table` is that of the CSV file. */
  png?: () => Blob | null | Promise<Blob | null>;
  svg?: () => Promise<string>;
  table?: (() => Table | Promise<Table>) | undefined;
}

/** A menu behind one button; it closes when something else is pressed or focused, and on Escape. */
function menu(label: string, name: string, items: HTMLElement[]): HTMLElement {
  const summary = el("summary", { class: "quiet", "aria-label": name }, label);
  const result = el("details", { class: "menu" }, summary, el("div", {}, ...items));
  const leave = ({ target }: Event) => {
    if (!result.contains(target as Node)) result.open = false;
  };
  result.addEventListener("toggle", () => {
    for (const kind of ["pointerdown", "focusin"])
      if (result.open) addEventListener(kind, leave);
      else removeEventListener(kind, leave);
  });
  result.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !result.open) return;
    result.open = false;
    summary.focus();
  });
  return result;
}

/**
 * A figure with its caption and the menu that saves it. One that has a poster shows it until `ready` is called, in the
 * same place, so that nothing moves when the core has answered.
 */
export function figure(parts: FigureParts): HTMLElement {
  const saves: [string, (() => Promise<Blob | null>) | undefined][] = [
    ["png", parts.png && (async () => parts.png!())],
    ["svg", parts.svg && (async () => svgOf(await parts.svg!()))],
    ["csv", parts.table && (async () => new Blob([csv(await parts.table!())], { type: "text/csv" }))],
  ];
  const buttons = saves.flatMap(([format, make]) =>
    make === undefined
      ? []
      : [
          button(
            format.toUpperCase(),
            () => void make().then((blob) => blob && save(blob, `normscope-${parts.id}.${format}`)),
            { "aria-label": `Save ${parts.id} as ${format.toUpperCase()}` },
          ),
        ],
  );
  const waits = posters.has(parts.id);
  return el(
    "figure",
    { id: `figure-${parts.id}`, "data-state": waits ? "waiting" : "ready" },
    el(
      "div",
      { class: "picture" },
      parts.content,
      waits ? el("img", { class: "poster", src: `posters/${parts.id}.webp`, alt: "" }) : null,
    ),
    el(
      "figcaption",
      {},
      el("p", {}, parts.caption ?? ""),
      el("span", { class: "actions" }, buttons.length === 0 ? null : menu("Save", `Save ${parts.id}`, buttons)),
    ),
  );
}

/** The figure shows what the core has answered and no longer its poster, which stays until the next frame is drawn. */
export function ready(element: HTMLElement): void {
  if (element.dataset["state"] === "ready") return;
  requestAnimationFrame(() => {
    element.dataset["state"] = "ready";
    element.querySelector(".poster")?.remove();
  });
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

type Spec = Record<string, unknown>;
type Rows = Map<string, object[]>;

/** `spec` with a name in the place of each list of rows, and the rows by that name. */
function separated(spec: Spec): { frame: Spec; rows: Rows } {
  const rows: Rows = new Map();
  const visit = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(visit);
    if (part === null || typeof part !== "object") return part;
    return Object.fromEntries(
      Object.entries(part).map(([key, value]: [string, unknown]) => {
        const { values, name = `rows ${rows.size}` } = (key === "data" ? value : {}) as {
          values?: object[];
          name?: string;
        };
        if (values === undefined) return [key, key === "datasets" ? value : visit(value)];
        rows.set(name, values);
        return [key, { name }];
      }),
    );
  };
  return { frame: visit(spec) as Spec, rows };
}

/** A container for charts of the core, redrawn when the core returns another one. */
export class ChartFigure {
  readonly element: HTMLElement;
  private readonly host: HTMLElement;
  private view: View | null = null;
  /** The `key` of what `view` draws. */
  private drawn = "";
  private generation = 0;
  private disposed = false;
  /** The chart on show or being drawn, without its rows, and the width that its parts were given. */
  private shown: { frame: Spec; key: string; description: string; width: number } | null = null;
  /** Rows of the chart, by the names in its specification. */
  private rows: Rows = new Map();
  private readonly sizes = new ResizeObserver(() => this.refit());

  constructor(
    readonly id: string,
    table?: () => Table | Promise<Table>,
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

  /** Draws `spec`; of several calls in a row only the last one is seen. If only rows are new, axes and legends stay. */
  async draw(spec: Spec, description: string): Promise<void> {
    const { frame, rows } = separated(spec);
    // The page has the description.
    const key = JSON.stringify([{ ...frame, description: "" }, color("--paper")]);
    if (key === this.shown?.key) {
      this.host.setAttribute("aria-label", description);
      for (const [name, values] of rows) this.rows.set(name, values);
      return this.fill(rows);
    }
    this.rows = rows;
    this.shown = { frame, key, description, width: 0 };
    return this.render();
  }

  /** Vega itself fits a chart to its container, but not one of several parts. */
  private refit(): void {
    const { shown, host } = this;
    if (shown === null || !("vconcat" in shown.frame) || [0, shown.width].includes(host.clientWidth)) return;
    void this.render();
  }

  private async render(): Promise<void> {
    const generation = (this.generation += 1);
    if (this.disposed) return;
    const { drawChart } = await import("../shared/chart_view");
    const { shown } = this;
    if (generation !== this.generation || shown === null) return;
    const { frame, description } = shown;
    this.host.setAttribute("aria-label", description);
    shown.width = this.host.clientWidth;
    const datasets = { ...(frame["datasets"] as object | undefined), ...Object.fromEntries(this.rows) };
    const chart: Chart = {
      id: this.id,
      question: "",
      answer: "",
      description,
      spec: { ...fitted(frame, this.host.clientWidth), datasets },
    };
    // Drawn invisibly in its container, so that it gets the container's width.
    const place = el("div", { class: "plot coming", "aria-hidden": "true" });
    this.host.append(place);
    const view = await drawChart(chart, place);
    if (generation !== this.generation) {
      view.finalize();
      place.remove();
      return;
    }
    this.view?.finalize();
    this.view = view;
    this.drawn = shown.key;
    await this.fill(this.rows);
    if (generation !== this.generation) return;
    place.classList.remove("coming");
    this.host.replaceChildren(place);
    ready(this.element);
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

  /** New rows for a data set of the chart's own, without drawing the axes anew. */
  update(name: string, values: object[]): Promise<void> {
    this.rows.set(name, values);
    return this.fill(new Map([[name, values]]));
  }

  private async fill(rows: Rows): Promise<void> {
    // A drawing under way fills in the newest rows itself.
    if (this.view === null || this.drawn !== this.shown?.key) return;
    for (const [name, values] of rows) this.view.data(name, values);
    // Wider labels of an axis move its title, which would be cut off.
    await this.view.resize().runAsync();
  }
}
