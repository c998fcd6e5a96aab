import { mark } from "../svg";
import type { Attributes } from "../svg";

const rectangle = (x: number, y: number, width: number, height: number): string =>
  `M${x.toFixed(1)} ${y.toFixed(1)}h${width.toFixed(1)}v${height.toFixed(1)}h${(-width).toFixed(1)}z`;
export const box = (x: number, y: number, width: number, height: number, attributes: Attributes): SVGPathElement =>
  mark("path", { d: rectangle(x, y, width, height), ...attributes });
export const words = (text: string, x: number, y: number, attributes: Attributes = {}): SVGTextElement =>
  mark("text", { x, y, fill: "var(--muted)", "font-size": 11, ...attributes }, text);
export const told = <T extends SVGElement>(element: T, text: string): T => {
  element.append(mark("title", {}, text));
  return element;
};

/** Diagonal lines that fill a rectangle. */
export function hatch(x: number, y: number, width: number, height: number): SVGPathElement {
  let d = "";
  for (let at = -height; at < width; at += 5) {
    const [from, to] = [Math.max(0, at), Math.min(width, at + height)];
    d += `M${(x + from).toFixed(1)} ${(y + height - (from - at)).toFixed(1)}L${(x + to).toFixed(1)} ${(y + height - (to - at)).toFixed(1)}`;
  }
  return mark("path", { d, stroke: "var(--series-2)", "stroke-width": 1.2, fill: "none" });
}
