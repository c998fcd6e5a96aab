import { el } from "../shared/dom";
import { figure } from "./figure";
import type { Table } from "./figure";
import { mark, svgPixels, svgText } from "./svg";
import type { Attributes } from "./svg";

export type Point = [x: number, y: number];
export type Range = [least: number, most: number];

/** A point that can be dragged or moved by arrow keys. */
export interface Handle {
  /** Identifies the handle between paintings, so that it keeps the focus. */
  id: string;
  label: string;
  /** Its position in the state, so that each of several key presses between two paintings moves it. */
  at(): Point;
  /** A CSS class in addition to "handle". */
  look?: string;
  radius?: number;
  move(to: Point): void;
  /** Called after a move, which becomes one step of the history. */
  done?(): void;
  /** Called when it is pressed or gets the focus. */
  chosen?(): void;
  /** Called on Delete or Backspace. */
  remove?(): void;
}

interface PlaneOptions {
  id: string;
  description: string;
  caption?: string;
  table?: () => Table | Promise<Table>;
  x: Range;
  y: Range;
  xTitle?: string;
  /** As a function, it is asked at every painting. */
  yTitle?: string | (() => string);
  /** Whether x numbers things: it has no ticks between two of them. */
  wholeX?: boolean;
  /** The names of things that x numbers from 0. */
  categories?: (index: number) => string;
  /** Height divided by width; by default both axes have the same scale. */
  aspect?: number;
  /** Without axes, where positions have no meaning of their own. */
  bare?: boolean;
  /** Called when the plane is pressed outside of any handle. */
  pressed?: (at: Point) => void;
}

/** About `count` round numbers inside a range, at least `apart` from one another, for the ticks of an axis. */
export function ticks([least, most]: Range, count: number, apart = 0): number[] {
  const rough = Math.max(apart, (most - least) / Math.max(1, count));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(least / step - 1e-9);
  const last = Math.floor(most / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

interface Held {
  handle: Handle;
  element: SVGGElement;
}

/**
 * A figure of the plane, drawn in the plane's coordinates. The function given to `painted` draws all of it with
 * `line`, `circle` and the like, whenever `changed` is called or the size changes; handles persist and only move.
 * The attribute `data-frames` counts the paintings, for tests.
 */
export class PlaneFigure {
  readonly element: HTMLElement;
  private readonly svg: SVGSVGElement;
  private readonly host = el("div", { class: "plane" });
  private readonly axes = mark("g", { "aria-hidden": "true" });
  private readonly frame = mark("rect");
  private readonly linesFrame = mark("rect");
  private readonly linesClip: string;
  private readonly marks: SVGGElement;
  private readonly tops = mark("g", {});
  private readonly held = new Map<string, Held>();
  private readonly sizes: ResizeObserver;
  private width = 0;
  private height = 0;
  private x: Range;
  private y: Range;
  private paint: (() => void) | null = null;
  private asked = false;
  private readonly margin: { left: number; right: number; top: number; bottom: number };

  constructor(private readonly options: PlaneOptions) {
    this.x = options.x;
    this.y = options.y;
    this.margin =
      options.bare === true
        ? { left: 4, right: 4, top: 4, bottom: 4 }
        : {
            left: options.yTitle === undefined ? 34 : 58,
            right: 12,
            top: 12,
            bottom: options.xTitle === undefined ? 24 : 40,
          };
    const clip = `frame-of-${options.id}`;
    const linesClip = `${clip}-lines`;
    this.linesClip = `url(#${linesClip})`;
    this.marks = mark("g", { "aria-hidden": "true", "clip-path": `url(#${clip})` });
    this.svg = mark(
      "svg",
      { role: "group", "aria-label": options.description },
      mark("clipPath", { id: clip }, this.frame),
      mark("clipPath", { id: linesClip }, this.linesFrame),
      this.axes,
      this.marks,
      this.tops,
    );
    // About as high as it will be: on a slow machine, the page is laid out before the first painting.
    const { x, y, aspect = (y[1] - y[0]) / (x[1] - x[0]) } = options;
    this.svg.setAttribute("viewBox", `0 0 1 ${aspect}`);
    this.host.append(this.svg);
    this.svg.addEventListener("pointerdown", (event) => this.press(event));
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.host);
    this.element = figure({
      id: options.id,
      content: this.host,
      caption: options.caption,
      table: options.table,
      svg: () => Promise.resolve(svgText(this.svg)),
      png: () => svgPixels(this.svg),
    });
  }

  /** Sets the function that draws the figure; it runs at most once per frame, after `changed` or a resize. */
  painted(paint: () => void): void {
    this.paint = paint;
    this.changed();
  }

  changed(): void {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.draw();
    });
  }

  /** Sets the visible part of the plane. */
  ranges(x: Range, y: Range): void {
    if (String([x, y]) === String([this.x, this.y])) return;
    [this.x, this.y] = [x, y];
    if (this.options.aspect === undefined) this.resize();
    else this.changed();
  }

  dispose(): void {
    this.sizes.disconnect();
  }

  // Shapes of a painting; all positions are in the plane's coordinates.

  line(from: Point, to: Point, attributes: Attributes = {}): void {
    const [[x1, y1], [x2, y2]] = [this.place(from), this.place(to)];
    this.marks.append(
      mark("line", { x1, y1, x2, y2, stroke: "var(--muted)", "clip-path": this.linesClip, ...attributes }),
    );
  }
  /** A line through `points`, closed into an area where `attributes` say how to fill it. */
  path(points: Point[], attributes: Attributes = {}): void {
    if (points.length === 0) return;
    const steps = points.map((point) =>
      this.place(point)
        .map((value) => value.toFixed(2))
        .join(" "),
    );
    const clip = "fill" in attributes ? { "clip-path": this.linesClip } : {};
    const d = `M${steps.join("L")}${"fill" in attributes ? "Z" : ""}`;
    this.marks.append(mark("path", { d, fill: "none", stroke: "var(--muted)", ...clip, ...attributes }));
  }
  /** The left end of what is visible. */
  leftmost(): number {
    return this.x[0];
  }
  /** A dot of `radius` pixels. */
  dot(at: Point, radius: number, attributes: Attributes = {}): void {
    const [cx, cy] = this.place(at);
    this.marks.append(mark("circle", { cx, cy, r: radius, fill: "var(--ink)", ...attributes }));
  }
  /** A circle of `radius` of the plane's own units, where both axes have one. */
  circle(center: Point, radius: number, attributes: Attributes = {}): void {
    const [cx, cy] = this.place(center);
    const r = radius * this.scale()[0];
    this.marks.append(mark("circle", { cx, cy, r, fill: "none", stroke: "var(--muted)", ...attributes }));
  }
  arrow(from: Point, to: Point, attributes: Attributes = {}): void {
    const [[x1, y1], [x2, y2]] = [this.place(from), this.place(to)];
    const length = Math.hypot(x2 - x1, y2 - y1);
    if (length < 1) return;
    const stroke = attributes["stroke"] ?? "var(--ink)";
    const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
    const head = Math.min(11, length);
    const [bx, by] = [x2 - head * ux, y2 - head * uy];
    const wing = 0.42 * head;
    this.marks.append(
      mark("line", { x1, y1, x2: bx, y2: by, "stroke-width": 2, ...attributes, stroke }),
      mark("path", {
        d: `M${x2} ${y2}L${bx - wing * uy} ${by + wing * ux}L${bx + wing * uy} ${by - wing * ux}Z`,
        fill: stroke,
      }),
    );
  }
  /** Text, `shift` pixels away from a position. */
  text(at: Point, words: string, attributes: Attributes = {}, shift: Point = [0, 0]): void {
    const [x, y] = this.place(at);
    this.marks.append(
      mark("text", { x: x + shift[0], y: y + shift[1], "font-size": 12, fill: "var(--ink)", ...attributes }, words),
    );
  }

  /** Sets the points that can be dragged; existing ones of the same id are moved. */
  handles(all: Handle[]): void {
    const kept = new Set(all.map(({ id }) => id));
    for (const [id, { element }] of this.held) {
      if (kept.has(id)) continue;
      element.remove();
      this.held.delete(id);
    }
    for (const handle of all) {
      const old = this.held.get(handle.id);
      if (old === undefined) {
        this.held.set(handle.id, { handle, element: this.newHandle(handle) });
      } else {
        old.handle = handle;
      }
      this.putHandle(this.held.get(handle.id)!);
    }
  }

  /** Gives the keyboard to a handle. */
  focus(id: string): void {
    this.held.get(id)?.element.focus({ preventScroll: true });
  }

  private newHandle({ id, radius = 8 }: Handle): SVGGElement {
    const element = mark(
      "g",
      { tabindex: 0, role: "slider", "aria-roledescription": "point", "data-handle": id },
      // Touch needs a larger target than the point.
      mark("circle", { r: Math.max(18, radius + 6), fill: "transparent", class: "grip" }),
      mark("circle", { r: radius + 4, class: "ring", fill: "none" }),
      mark("circle", { r: radius, class: "knob" }),
    );
    const current = () => this.held.get(id)?.handle;
    let dragging = false;
    element.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      if (event.button !== 0) return;
      dragging = true;
      element.setPointerCapture(event.pointerId);
      element.focus({ preventScroll: true });
      event.preventDefault();
    });
    element.addEventListener("pointermove", (event) => {
      if (dragging) current()?.move(this.clamped(this.at(event)));
    });
    const end = () => {
      if (dragging) current()?.done?.();
      dragging = false;
    };
    element.addEventListener("pointerup", end);
    element.addEventListener("pointercancel", end);
    element.addEventListener("focus", () => current()?.chosen?.());
    element.addEventListener("keydown", (event) => this.key(event, current()));
    element.addEventListener("keyup", (event) => {
      if (event.key.startsWith("Arrow")) current()?.done?.();
    });
    element.addEventListener("blur", () => current()?.done?.());
    this.tops.append(element);
    return element;
  }

  private putHandle({ handle, element }: Held): void {
    const at = handle.at();
    const [x, y] = this.place(at);
    const [px, py] = at.map((value) => Number(value.toFixed(3)));
    element.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)})`);
    element.setAttribute("class", `handle ${handle.look ?? ""}`);
    element.setAttribute("aria-label", handle.label);
    element.setAttribute("aria-valuenow", String(px));
    element.setAttribute("aria-valuetext", `x ${px}, y ${py}`);
    element.dataset["x"] = String(px);
    element.dataset["y"] = String(py);
  }

  private key(event: KeyboardEvent, handle: Handle | undefined): void {
    if (handle === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const [sx, sy] = this.scale();
    const step = event.shiftKey ? 20 : 4;
    const by: Record<string, Point> = {
      ArrowLeft: [-step / sx, 0],
      ArrowRight: [step / sx, 0],
      ArrowUp: [0, step / sy],
      ArrowDown: [0, -step / sy],
    };
    const move = by[event.key];
    if (move !== undefined) {
      const [x, y] = handle.at();
      handle.move(this.clamped([x + move[0], y + move[1]]));
    } else if ((event.key === "Delete" || event.key === "Backspace") && handle.remove !== undefined) {
      handle.remove();
    } else {
      return;
    }
    event.preventDefault();
  }

  private press(event: PointerEvent): void {
    if (event.button === 0) this.options.pressed?.(this.clamped(this.at(event)));
  }

  private at(event: PointerEvent): Point {
    const box = this.svg.getBoundingClientRect();
    const [sx, sy] = this.scale();
    const { left, bottom } = this.margin;
    return [
      this.x[0] + (event.clientX - box.left - left) / sx,
      this.y[0] + (this.height - bottom - (event.clientY - box.top)) / sy,
    ];
  }

  /** Clamped to the visible range and rounded to thousandths, so that links stay short. */
  private clamped([x, y]: Point): Point {
    const into = (value: number, [least, most]: Range) => Number(Math.min(most, Math.max(least, value)).toFixed(3));
    return [into(x, this.x), into(y, this.y)];
  }

  /** Pixels of a unit of each axis. */
  private scale(): Point {
    const { left, right, top, bottom } = this.margin;
    return [
      Math.max(1, this.width - left - right) / (this.x[1] - this.x[0]),
      Math.max(1, this.height - top - bottom) / (this.y[1] - this.y[0]),
    ];
  }

  private place([x, y]: Point): Point {
    const [sx, sy] = this.scale();
    const { left, bottom } = this.margin;
    return [left + (x - this.x[0]) * sx, this.height - bottom - (y - this.y[0]) * sy];
  }

  private resize(): void {
    const width = this.host.clientWidth;
    if (width === 0) return;
    const { left, right, top, bottom } = this.margin;
    const unit = (width - left - right) / (this.x[1] - this.x[0]);
    this.width = width;
    this.height = Math.round(
      this.options.aspect === undefined ? unit * (this.y[1] - this.y[0]) + top + bottom : this.options.aspect * width,
    );
    this.svg.setAttribute("width", String(this.width));
    this.svg.setAttribute("height", String(this.height));
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    // Dots at the edge are drawn whole; lines, which may go on and on, end there, next to the labels of the axes.
    for (const [frame, beyond] of [
      [this.frame, 10],
      [this.linesFrame, 1],
    ] as const) {
      const edge = {
        x: left - beyond,
        y: top - beyond,
        width: width - left - right + 2 * beyond,
        height: this.height - top - bottom + 2 * beyond,
      };
      for (const [name, value] of Object.entries(edge)) frame.setAttribute(name, String(Math.max(0, value)));
    }
    this.changed();
  }

  private draw(): void {
    if (this.width === 0) this.resize();
    if (this.width === 0 || this.paint === null) return;
    this.marks.replaceChildren();
    if (this.options.bare !== true) this.drawAxes();
    this.paint();
    for (const held of this.held.values()) this.putHandle(held);
    this.element.dataset["frames"] = String(Number(this.element.dataset["frames"] ?? 0) + 1);
  }

  private drawAxes(): void {
    const { xTitle, yTitle, wholeX, categories } = this.options;
    const [[left, bottom], [right, top]] = [this.place([this.x[0], this.y[0]]), this.place([this.x[1], this.y[1]])];
    const rule = (x1: number, y1: number, x2: number, y2: number, strong: boolean) =>
      mark("line", { x1, y1, x2, y2, stroke: "var(--rule)", "stroke-width": strong ? 1.5 : 0.5 });
    const label = (x: number, y: number, words: string, attributes: Attributes) =>
      mark("text", { x, y, "font-size": 11, fill: "var(--muted)", ...attributes }, words);
    const show = (value: number) => String(value).replace("-", "\u2212");
    const parts: Node[] = [];
    const middle = { "text-anchor": "middle" };
    for (const value of categories !== undefined
      ? ticks(this.x, Infinity, 1)
      : ticks(this.x, (right - left) / 70, wholeX === true ? 1 : 0)) {
      const [x] = this.place([value, 0]);
      if (categories === undefined) parts.push(rule(x, bottom, x, top, value === 0));
      parts.push(label(x, bottom + 15, categories?.(value) ?? show(value), middle));
    }
    // At least two of three ticks are inside: a single one would give no scale.
    for (const value of ticks(this.y, Math.max(3, (bottom - top) / 50))) {
      const [, y] = this.place([0, value]);
      parts.push(rule(left, y, right, y, value === 0), label(left - 6, y + 4, show(value), { "text-anchor": "end" }));
    }
    const title = { "font-size": 12, fill: "var(--ink)", "text-anchor": "middle" };
    if (xTitle !== undefined) parts.push(label((left + right) / 2, bottom + 33, xTitle, title));
    if (yTitle !== undefined) {
      const y = (top + bottom) / 2;
      parts.push(
        label(13, y, typeof yTitle === "string" ? yTitle : yTitle(), { ...title, transform: `rotate(-90 13 ${y})` }),
      );
    }
    this.axes.replaceChildren(...parts);
  }
}
