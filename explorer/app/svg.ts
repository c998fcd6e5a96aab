import { el } from "../shared/dom";
import { pngOf, svgOf } from "../shared/files";

export type Attributes = Record<string, string | number>;

const space = "http://www.w3.org/2000/svg";

/** Creates an SVG element. Colours may be CSS variables, var(--…); saved pictures contain their current values. */
export function mark<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** A picture as an SVG file, with colours resolved: a saved file has no access to the page's variables. */
export function svgText(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const originals = [svg, ...svg.querySelectorAll("*")];
  const page = getComputedStyle(document.documentElement);
  [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(originals[i]!);
    if (element.matches("g.handle")) for (const name of ["tabindex", "role"]) element.removeAttribute(name);
    if (element.matches("line, path, circle, text")) {
      for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity"])
        element.setAttribute(name, style.getPropertyValue(name));
    }
  });
  copy.setAttribute("xmlns", space);
  copy.setAttribute("font-family", "sans-serif");
  copy.prepend(mark("rect", { width: "100%", height: "100%", fill: page.backgroundColor }));
  return new XMLSerializer().serializeToString(copy);
}

/** Draws the picture as pixels, two for one of the page. */
export async function svgPixels(svg: SVGSVGElement): Promise<Blob | null> {
  const image = new Image();
  image.src = URL.createObjectURL(svgOf(svgText(svg)));
  await image.decode();
  URL.revokeObjectURL(image.src);
  const { width, height } = svg.viewBox.baseVal;
  const canvas = el("canvas", { width: 2 * width, height: 2 * height });
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return pngOf(canvas);
}
