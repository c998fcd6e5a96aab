import type { States, Weights } from "../../engine/playground";
import { el } from "../../shared/dom";
import { pngOf } from "../../shared/files";
import { color } from "../../shared/theme";
import { figure } from "../figure";
import { rgb } from "./field_canvas";
import type { Sheet } from "./playground_morph";

/** The net at a step: its weights, and its neurons over a sheet of inputs. */
export interface Wiring {
  weights: Weights[];
  sheet: Sheet;
  states: States;
  /** A colour for each class. */
  colors: string[];
}

/** Pixels between neurons of a layer, at least, and of the words below the layers. */
const gap = 5;
const words = 18;
/** Largest side of a neuron's picture, and the part of its layer's width that it may take. */
const side = 46;
const part = 0.52;

/** The net as a diagram: each neuron shows its value over the plane of inputs, lines are weights. */
export class NetDiagram {
  private readonly canvas = el("canvas", { class: "net", role: "img" });
  readonly element = figure({
    id: "net",
    content: this.canvas,
    caption: "Neurons over the plane, blue below zero, orange above; lines are weights.",
    png: () => pngOf(this.canvas),
  });
  private wiring: Wiring | null = null;
  private readonly sizes = new ResizeObserver(() => this.draw());

  constructor() {
    this.sizes.observe(this.canvas);
  }

  dispose(): void {
    this.sizes.disconnect();
  }

  show(wiring: Wiring): void {
    this.wiring = wiring;
    const counts = countsOf(wiring);
    this.element.dataset["neurons"] = counts.join(" ");
    this.canvas.ariaLabel = `The net: ${counts.join(", ")} neurons from the input to the classes, each with its value over the plane.`;
    this.draw();
  }

  private draw(): void {
    const { canvas, wiring } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const context = canvas.getContext("2d");
    if (wiring === null || context === null || width === 0) return;
    const ratio = Math.min(devicePixelRatio, 2);
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    context.scale(ratio, ratio);
    const counts = countsOf(wiring);
    const room = height - words;
    const size = Math.min(side, (part * width) / counts.length, room / Math.max(...counts) - gap);
    const place = (layer: number, neuron: number): [number, number] => [
      (width * (layer + 0.5)) / counts.length,
      (room * (neuron + 0.5)) / (counts[layer] ?? 1),
    ];
    const [below, above] = [color("--series-1"), color("--series-2")];
    wiring.weights.forEach(({ in: inputs, out, weight }, layer) => {
      const most = weight.reduce((largest, value) => Math.max(largest, Math.abs(value)), 1e-12);
      for (let to = 0; to < out; ++to) {
        for (let from = 0; from < inputs; ++from) {
          const value = (weight[to * inputs + from] ?? 0) / most;
          context.strokeStyle = value < 0 ? below : above;
          context.globalAlpha = 0.15 + 0.75 * Math.abs(value);
          context.lineWidth = 0.5 + 2.5 * Math.abs(value);
          context.beginPath();
          const [[x1, y1], [x2, y2]] = [place(layer, from), place(layer + 1, to)];
          context.moveTo(x1 + size / 2, y1);
          context.bezierCurveTo((x1 + x2) / 2, y1, (x1 + x2) / 2, y2, x2 - size / 2, y2);
          context.stroke();
        }
      }
    });
    context.globalAlpha = 1;
    context.imageSmoothingEnabled = true;
    const paper = color("--paper");
    counts.forEach((count, layer) => {
      for (let neuron = 0; neuron < count; ++neuron) {
        const [x, y] = place(layer, neuron);
        const box = [x - size / 2, y - size / 2, size, size] as const;
        if (layer < wiring.states.states.length) {
          context.drawImage(pictured(wiring, layer, neuron, rgb(below), rgb(above), rgb(paper)), ...box);
        } else {
          context.fillStyle = wiring.colors[neuron] ?? paper;
          context.fillRect(...box);
        }
        context.strokeStyle = color("--muted");
        context.lineWidth = 1;
        context.strokeRect(...box);
      }
    });
    context.fillStyle = color("--muted");
    context.font = `11px ${getComputedStyle(document.documentElement).getPropertyValue("--sans")}`;
    context.textAlign = "center";
    counts.forEach((_, layer) => {
      const name =
        layer === 0
          ? "input"
          : layer === counts.length - 1
            ? "class"
            : counts.length > 6
              ? String(layer)
              : `layer ${layer}`;
      context.fillText(name, place(layer, 0)[0], height - 4);
    });
  }
}

const countsOf = ({ weights }: Wiring): number[] => [weights[0]?.in ?? 0, ...weights.map(({ out }) => out)];

/** A neuron's values over the sheet, a pixel a point, the lowest row at the bottom. */
function pictured(
  { sheet, states }: Wiring,
  layer: number,
  neuron: number,
  below: number[],
  above: number[],
  paper: number[],
): HTMLCanvasElement {
  const { columns, rows } = sheet;
  const canvas = el("canvas", { width: columns, height: rows });
  const context = canvas.getContext("2d");
  const values = states.states[layer];
  if (context === null || values === undefined) return canvas;
  const value = (i: number) => values[i * states.width + neuron] ?? 0;
  let most = 1e-12;
  for (let i = 0; i < columns * rows; ++i) most = Math.max(most, Math.abs(value(i)));
  const image = context.createImageData(columns, rows);
  for (let i = 0; i < columns * rows; ++i) {
    const share = value(i) / most;
    const to = 4 * ((rows - 1 - Math.floor(i / columns)) * columns + (i % columns));
    const tint = share < 0 ? below : above;
    for (let k = 0; k < 3; ++k)
      image.data[to + k] = (1 - Math.abs(share)) * (paper[k] ?? 0) + Math.abs(share) * (tint[k] ?? 0);
    image.data[to + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
