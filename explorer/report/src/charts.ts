import type { View } from "vega";
import { drawChart, isEmpty, saveChart } from "../../shared/chart_view";
import type { Chart } from "../../generated/charts";
import { button, el, slot } from "../../shared/dom";

/** A chart's place in the page. `data-state` is pending, drawing, ready, empty or failed. */
class Figure {
  readonly element: HTMLElement;
  private readonly host: HTMLElement;
  private view: View | null = null;
  private generation = 0;

  constructor(
    private readonly chart: Chart,
    index: number,
  ) {
    const height = chart.spec["height"];
    this.host = el("div", { class: "plot", role: "img", "aria-label": chart.description });
    this.host.style.minHeight = `${typeof height === "number" ? height + 60 : 260}px`;
    const save = (format: "png" | "svg") =>
      button(format.toUpperCase(), () => void (this.view && saveChart(this.view, chart.id, format)), {
        class: "quiet",
        "aria-label": `Save figure ${index + 1} as ${format.toUpperCase()}`,
      });
    this.element = el(
      "figure",
      { id: `chart-${chart.id}`, "data-state": "pending" },
      chart.panel === undefined ? el("h3", {}, chart.question) : el("h4", {}, chart.panel),
      el("div", { class: "plot-scroll" }, this.host),
      el(
        "figcaption",
        {},
        el("p", {}, el("b", {}, `Figure ${index + 1}. `), chart.answer),
        el("span", { class: "actions" }, save("png"), save("svg")),
      ),
    );
  }

  get drawn(): boolean {
    return this.element.dataset["state"] !== "pending";
  }

  async draw(): Promise<void> {
    const generation = (this.generation += 1);
    this.view?.finalize();
    this.view = null;
    if (isEmpty(this.chart)) {
      this.say("empty", "Nothing to draw: the checkpoint holds no values for this figure.");
      return;
    }
    this.element.dataset["state"] = "drawing";
    try {
      const view = await drawChart(this.chart, this.host);
      // A newer drawing, in another theme, may have begun meanwhile.
      if (generation !== this.generation) {
        view.finalize();
        return;
      }
      this.view = view;
      this.element.dataset["state"] = "ready";
    } catch (error) {
      if (generation === this.generation) this.say("failed", `This figure could not be drawn: ${String(error)}`);
    }
  }

  /** What is on show is of another theme: it is drawn again when it is near the window. */
  outdate(): void {
    this.generation += 1;
    this.element.dataset["state"] = "pending";
  }

  dispose(): void {
    this.generation += 1;
    this.view?.finalize();
    this.view = null;
  }

  private say(state: string, text: string): void {
    this.host.replaceChildren(el("p", { class: "muted" }, text));
    this.host.removeAttribute("role");
    this.host.style.minHeight = "";
    this.element.dataset["state"] = state;
  }
}

export interface ChartsPlace {
  host?: HTMLElement;
  /** Figures that stand before these. */
  before?: number;
  signal?: AbortSignal | undefined;
}

/** The figures in their order, those of one question in panels next to each other. */
function arranged(charts: Chart[], figures: Figure[]): HTMLElement[] {
  const result: HTMLElement[] = [];
  let open: { question: string; panels: HTMLElement } | null = null;
  charts.forEach(({ panel, question }, i) => {
    const { element } = figures[i]!;
    if (panel === undefined) {
      open = null;
      result.push(element);
    } else if (open?.question === question) {
      open.panels.append(element);
    } else {
      open = { question, panels: el("div", { class: "panels" }, element) };
      result.push(el("div", { class: "question" }, el("h3", {}, question), open.panels));
    }
  });
  return result;
}

/** Fills the section of charts: each is drawn when it is scrolled near the window, and all before printing. */
export function showCharts(
  charts: Chart[],
  { host = slot("charts-body"), before = 0, signal }: ChartsPlace = {},
): { redraw: () => void } {
  const figures = charts.map((chart, index) => new Figure(chart, before + index));
  host.append(...(figures.length > 0 ? arranged(charts, figures) : [el("p", { class: "muted" }, "No figures.")]));
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const figure = figures.find(({ element }) => element === entry.target);
        if (!entry.isIntersecting || figure === undefined) continue;
        observer.unobserve(entry.target);
        if (!figure.drawn) void figure.draw();
      }
    },
    { rootMargin: "600px 0px" },
  );
  for (const figure of figures) observer.observe(figure.element);

  const redraw = () => {
    for (const figure of figures.filter(({ drawn }) => drawn)) {
      figure.outdate();
      observer.observe(figure.element);
    }
  };
  // In print the figures have another width and the light theme; class `printing` sets both.
  const until = signal === undefined ? {} : { signal };
  const drawAll = () => {
    for (const figure of figures) void figure.draw();
  };
  addEventListener("beforeprint", drawAll, until);
  addEventListener("afterprint", redraw, until);
  signal?.addEventListener("abort", () => {
    observer.disconnect();
    for (const figure of figures) figure.dispose();
  });
  return { redraw };
}
