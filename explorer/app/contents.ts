import type { Engine } from "../engine/client";
import { stepNames, steps } from "../engine/geometry";
import { normals } from "../engine/random";
import { el } from "../shared/dom";
import { chapters } from "./chapters";
import { directionColors } from "./colors";
import { mark } from "./svg";

const pointCount = 260;
const spec = { kind: "layer" as const, width: 3, eps: 1e-4, gain: [1, 1.8, 0.6], bias: [1.2, -0.6, 0.9] };

/** The start page: an introduction, the four steps as a strip of figures, and the chapters. */
export function showContents(main: HTMLElement, engine: Engine): void {
  const strip = el("div", { class: "strip-of-steps" });
  main.replaceChildren(
    el(
      "header",
      {},
      el("p", { class: "kicker" }, "Normscope"),
      el("h1", {}, "What normalization layers do"),
      el(
        "p",
        {},
        "Before every attention and every MLP block of a transformer stands a normalization layer. It looks like " +
          "bookkeeping: subtract the mean, divide by the deviation. It decides which keys a head can see, bends what " +
          "straight lines cannot separate, and bounds what a model can ever say. These chapters show how; every " +
          "picture is computed here, in your browser, by the library itself.",
      ),
    ),
    strip,
    el(
      "ol",
      { class: "chapters" },
      ...chapters.map((entry) =>
        el("li", {}, el("a", { href: `#/${entry.id}` }, entry.title), el("span", {}, entry.question)),
      ),
    ),
  );
  void drawSteps(engine).then((panels) => strip.replaceChildren(...panels));
}

async function drawSteps(engine: Engine): Promise<HTMLElement[]> {
  const input = await normals(engine, 3 * pointCount, 3);
  const stages = [input, ...(await steps(engine, spec, input))];
  const colors = directionColors(input);
  return stages.map((points, index) =>
    el(
      "a",
      { class: "step-panel", href: `#/geometry?at=${index}&gain=1,1.8,0.6&bias=1.2,-0.6,0.9` },
      panel(points, colors),
      el("span", {}, index === 0 ? "input" : (stepNames[index - 1] ?? "")),
    ),
  );
}

/** Points seen from (1, −0.6, 0.25) without perspective, a direction far from all-ones. */
function panel(points: Float64Array, colors: Float32Array): Node {
  const dots = Array.from({ length: points.length / 3 }, (_, i) => {
    const [x = 0, y = 0, z = 0] = points.subarray(3 * i, 3 * i + 3);
    const tint = [...colors.subarray(3 * i, 3 * i + 3)].map((part) => Math.round(part * 255)).join(" ");
    const place = { cx: (0.51 * x + 0.86 * y).toFixed(3), cy: (0.18 * x - 0.11 * y - 0.98 * z).toFixed(3) };
    return mark("circle", { ...place, r: 0.09, fill: `rgb(${tint})` });
  });
  return mark("svg", { viewBox: "-4.2 -4.2 8.4 8.4", "aria-hidden": "true" }, ...dots);
}
