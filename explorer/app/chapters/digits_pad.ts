import { pixels, side } from "../../engine/digits";
import { button, el } from "../../shared/dom";
import { color } from "../../shared/theme";
import { rgb } from "./field_canvas";

/** Radius of the pen, in pixels of the digit. */
const pen = 0.95;

/** A square to draw a digit on; `changed` is called with its shades. */
export class DigitPad {
  private readonly canvas = el("canvas", {
    class: "pad",
    width: side,
    height: side,
    role: "img",
    "aria-label": "A pad to draw a digit on; “Another digit” fills it.",
  });
  readonly element: HTMLElement;
  private shades = new Float64Array(pixels);
  private last: [number, number] | null = null;

  constructor(
    private readonly changed: (shades: Float64Array) => void,
    another: () => Float64Array | null,
  ) {
    this.element = el(
      "div",
      { role: "group", "aria-label": "Your own digit" },
      this.canvas,
      el(
        "div",
        { class: "panel" },
        button("Another digit", () => this.fill(another()), { class: "action" }),
        button("Clear", () => this.fill(new Float64Array(pixels)), { class: "quiet" }),
      ),
    );
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      event.preventDefault();
      this.canvas.setPointerCapture(event.pointerId);
      this.last = this.at(event);
      this.stroke(this.last);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (this.last === null) return;
      this.stroke(this.at(event));
    });
    const end = () => (this.last = null);
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
    this.draw();
  }

  fill(shades: Float64Array | null): void {
    if (shades === null) return;
    this.shades = Float64Array.from(shades);
    this.draw();
    this.changed(this.shades);
  }

  /** In the colours of the theme. */
  draw(): void {
    const context = this.canvas.getContext("2d");
    if (context === null) return;
    const [paper, ink] = [rgb(color("--paper")), rgb(color("--ink"))];
    const image = context.createImageData(side, side);
    this.shades.forEach((shade, i) => {
      for (let k = 0; k < 3; ++k) image.data[4 * i + k] = (1 - shade) * (paper[k] ?? 0) + shade * (ink[k] ?? 0);
      image.data[4 * i + 3] = 255;
    });
    context.putImageData(image, 0, 0);
  }

  private at(event: PointerEvent): [number, number] {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    return [((event.clientX - left) / width) * side, ((event.clientY - top) / height) * side];
  }

  /** From the last place to this one. */
  private stroke(to: [number, number]): void {
    const from = this.last ?? to;
    const steps = Math.max(1, Math.ceil(3 * Math.hypot(to[0] - from[0], to[1] - from[1])));
    for (let step = 0; step <= steps; ++step) {
      const [x, y] = [from[0] + ((to[0] - from[0]) * step) / steps, from[1] + ((to[1] - from[1]) * step) / steps];
      for (let i = 0; i < pixels; ++i) {
        const distance = Math.hypot((i % side) + 0.5 - x, Math.floor(i / side) + 0.5 - y);
        this.shades[i] = Math.max(this.shades[i]!, Math.min(1, Math.max(0, 1.6 - distance / pen)));
      }
    }
    this.last = to;
    this.draw();
    this.changed(this.shades);
  }
}
