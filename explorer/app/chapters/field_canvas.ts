import { el } from "../../shared/dom";
import type { Answers, Grid } from "../../engine/playground";

type Rgb = [number, number, number];

/** The numbers of a computed colour, "rgb(1, 2, 3)". */
export const rgb = (color: string): Rgb => {
  const [r = 0, g = 0, b = 0] = (color.match(/[\d.]+/g) ?? []).map(Number);
  return [r, g, b];
};

/** Points of the plane and their classes. */
export interface Marks {
  x: ArrayLike<number>;
  labels: ArrayLike<number>;
}

interface Editing {
  add(x: number, y: number): void;
  remove(index: number): void;
  say(text: string): void;
}

/** Steps of the keyboard's cross, in parts of the plane. */
const stride = 1 / 40;
/** Pixels around a point within which a press selects it. */
const reach = 12;

/** Predictions of a net over the plane, with points that can be added and removed. */
export class FieldCanvas {
  readonly canvas = el("canvas", { class: "boundary", role: "img" });
  private readonly cells = document.createElement("canvas");
  private grid: Grid | null = null;
  private answers: Answers | null = null;
  private marks: Marks = { x: [], labels: [] };
  private colors: Rgb[] = [];
  private paper: Rgb = [255, 255, 255];
  private editing: Editing | null = null;
  private cross: [number, number] | null = null;
  private readonly sizes = new ResizeObserver(() => this.draw());

  constructor() {
    this.sizes.observe(this.canvas);
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.placeCross(null));
  }

  show(grid: Grid, answers: Answers | null, marks: Marks, colors: string[], paper: string): void {
    this.grid = grid;
    this.answers = answers;
    this.marks = marks;
    this.colors = colors.map(rgb);
    this.paper = rgb(paper);
    this.paint();
    this.draw();
  }

  /** Moves the points at once, the field later. */
  place(marks: Marks): void {
    this.marks = marks;
    this.draw();
  }

  /** With `editing` points can be added and removed, by mouse, finger and keys. */
  edit(editing: Editing | null, description: string): void {
    this.editing = editing;
    if (editing === null) this.canvas.removeAttribute("tabindex");
    else this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", editing === null ? "img" : "application");
    this.canvas.classList.toggle("editable", editing !== null);
    this.canvas.setAttribute("aria-label", description);
  }

  dispose(): void {
    this.sizes.disconnect();
  }

  /** One pixel per cell, the lowest row at the bottom; a higher probability gives a stronger colour. */
  private paint(): void {
    const { grid, answers } = this;
    if (grid === null || answers === null) return;
    this.cells.width = grid.columns;
    this.cells.height = grid.rows;
    const context = this.cells.getContext("2d");
    if (context === null) return;
    const image = context.createImageData(grid.columns, grid.rows);
    const least = 1 / Math.max(2, this.colors.length);
    for (let row = 0; row < grid.rows; ++row) {
      for (let column = 0; column < grid.columns; ++column) {
        const from = row * grid.columns + column;
        const color = this.colors[answers.classes[from] ?? 0] ?? [128, 128, 128];
        const sure = Math.max(0, ((answers.probabilities[from] ?? 0) - least) / (1 - least));
        const share = 0.06 + 0.4 * sure;
        const to = 4 * ((grid.rows - 1 - row) * grid.columns + column);
        for (let i = 0; i < 3; ++i) {
          image.data[to + i] = (1 - share) * (this.paper[i] ?? 0) + share * (color[i] ?? 0);
        }
        image.data[to + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
  }

  private draw(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const context = this.canvas.getContext("2d");
    if (this.grid === null || context === null || width === 0) return;
    const ratio = Math.min(devicePixelRatio, 2);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    context.scale(ratio, ratio);
    context.fillStyle = `rgb(${this.paper.join(" ")})`;
    context.fillRect(0, 0, width, height);
    if (this.answers !== null) context.drawImage(this.cells, 0, 0, width, height);
    const count = this.marks.labels.length;
    const radius = count > 400 ? 2.6 : count > 60 ? 3.6 : 6;
    context.lineWidth = 1;
    context.strokeStyle = `rgb(${this.paper.join(" ")})`;
    for (let i = 0; i < this.marks.labels.length; ++i) {
      const [x, y] = this.pixel(this.marks.x[2 * i] ?? 0, this.marks.x[2 * i + 1] ?? 0);
      context.fillStyle = `rgb(${(this.colors[this.marks.labels[i] ?? 0] ?? [128, 128, 128]).join(" ")})`;
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
    }
    if (this.cross === null) return;
    const [x, y] = this.pixel(...this.cross);
    context.strokeStyle = this.paper[0] > 128 ? "black" : "white";
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x - 9, y);
    context.lineTo(x + 9, y);
    context.moveTo(x, y - 9);
    context.lineTo(x, y + 9);
    context.stroke();
  }

  private pixel(x: number, y: number): [number, number] {
    const { left, right, bottom, top } = this.grid!;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    return [((x - left) / (right - left)) * width, ((top - y) / (top - bottom)) * height];
  }

  private nearest(x: number, y: number): number | null {
    const [px, py] = this.pixel(x, y);
    let best: number | null = null;
    let least = reach;
    for (let i = 0; i < this.marks.labels.length; ++i) {
      const [mx, my] = this.pixel(this.marks.x[2 * i] ?? 0, this.marks.x[2 * i + 1] ?? 0);
      const distance = Math.hypot(px - mx, py - my);
      if (distance <= least) [best, least] = [i, distance];
    }
    return best;
  }

  private click(event: MouseEvent): void {
    if (this.editing === null || this.grid === null) return;
    const { left, right, bottom, top } = this.grid;
    const x = left + ((right - left) * event.offsetX) / this.canvas.clientWidth;
    const y = top - ((top - bottom) * event.offsetY) / this.canvas.clientHeight;
    const near = this.nearest(x, y);
    if (near === null) this.editing.add(x, y);
    else this.editing.remove(near);
  }

  private placeCross(at: [number, number] | null): void {
    if (at === null && this.cross === null) return;
    this.cross = at;
    this.draw();
  }

  private key(event: KeyboardEvent): void {
    if (this.editing === null || this.grid === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const { left, right, bottom, top } = this.grid;
    const [x, y] = this.cross ?? [(left + right) / 2, (bottom + top) / 2];
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
    };
    const move = moves[event.key];
    if (move !== undefined) {
      const inside = (value: number, low: number, high: number) => Math.min(high, Math.max(low, value));
      this.placeCross([
        inside(x + move[0] * stride * (right - left), left, right),
        inside(y + move[1] * stride * (top - bottom), bottom, top),
      ]);
      this.editing.say(`${this.cross![0].toFixed(2)}, ${this.cross![1].toFixed(2)}`);
    } else if (event.key === "Enter" || event.key === " ") {
      this.placeCross([x, y]);
      this.editing.add(x, y);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      const near = this.nearest(x, y);
      if (near === null) this.editing.say("There is no point here.");
      else this.editing.remove(near);
    } else {
      return;
    }
    event.preventDefault();
  }
}
