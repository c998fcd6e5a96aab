import { image } from "../../engine/geometry";
import { number } from "../../shared/format";
import type { Page } from "../chapter";
import { controls, slider } from "../controls";
import { ready } from "../figure";
import { boundInText, numberInText } from "../numbers";
import { PlaneFigure } from "../plane";
import type { Point } from "../plane";
import { player } from "../player";

/** The part of the state that this figure shows. */
export const profileDefaults = { norm: 3, axis: 1 };
/** Norms of the small GPT, and axes of the ellipsoid of each. */
export const norms = { min: 1, max: 9 };
export const axes = { min: 1, max: 127 };
const width = 128;
const eps = 1e-5;

interface Profile {
  name: string;
  /** The longest first. */
  lengths: Float64Array;
}

/** The gains of the norms in a safetensors file of float32, in the order of the model. */
function gainsOf(bytes: ArrayBuffer): [name: string, gain: number[]][] {
  const size = Number(new DataView(bytes).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, size))) as Record<
    string,
    { data_offsets?: [number, number] }
  >;
  const found = Object.entries(header).flatMap(([name, { data_offsets: range }]): [string, number[]][] => {
    if (range === undefined || !/\.ln_\w+\.weight$/.test(name)) return [];
    const gain = new Float32Array(bytes.slice(8 + size + range[0], 8 + size + range[1]));
    return [[name.replace(/^transformer\.|\.weight$/g, ""), [...gain]]];
  });
  // By name "h.0.ln_1" comes before "ln_f", as in the model.
  return found.sort(([a], [b]) => (a < b ? -1 : 1));
}

type Shown = typeof profileDefaults & { example: string; url: string };

/** The lengths of the axes of each norm of the small GPT; done when they are drawn. */
export async function mountProfile(page: Page<Shown>, weights: () => Promise<ArrayBuffer>): Promise<void> {
  const { store } = page;
  let profiles: Profile[] = [];
  // The player moves between norms; the figure shows the nearest one, since no norm lies between two.
  const nearest = (norm: number) => profiles[Math.round(norm) - 1];
  const at = (norm: number, axis: number): number => nearest(norm)?.lengths[axis - 1] ?? 0;
  const curve = (length: (axis: number) => number): Point[] =>
    Array.from({ length: axes.max }, (_, i) => [i + 1, length(i + 1)]);
  const plane = new PlaneFigure({
    id: "profile",
    description: "The lengths of the axes of each norm's ellipsoid, the longest first.",
    caption:
      "Blue: the norm that is chosen. Grey: the other eight. Dashed: the radius √128 ≈ 11.3 of the sphere before the gain.",
    x: [0, axes.max + 1],
    y: [0, 25],
    xTitle: "axis",
    yTitle: "length",
    aspect: 0.42,
    table: () => ({
      columns: ["norm", "axis", "length"],
      rows: profiles.flatMap(({ name, lengths }) => Array.from(lengths, (length, i) => [name, i + 1, length])),
    }),
  });
  page.keep(plane);
  page.slot("profile").append(plane.element);
  const toNorm = { ...norms, step: 0.01, show: (value: number) => `${Math.round(value)} of ${norms.max}` };
  page.slot("profile-controls").append(
    controls(
      "Norms of the small GPT",
      slider(page, "Norm", "norm", toNorm),
      player(page, {
        read: (state) => state.norm,
        write: (norm) => ({ norm }),
        from: norms.min,
        to: () => norms.max,
        pace: 900,
        label: "Through the norms",
        seen: { element: plane.element, opens: true },
      }),
    ),
  );
  const rounded = { read: ({ norm }: Shown) => Math.round(norm), write: (norm: number) => ({ norm }) };
  boundInText(page, "norm", "norm of the small GPT, in the text", rounded, { ...norms, step: 1 });
  numberInText(page, "axis, in the text", "axis", { ...axes, step: 1 });
  plane.painted(() => {
    const { norm, axis } = store.get();
    plane.line([0, Math.sqrt(width)], [axes.max + 1, Math.sqrt(width)], {
      stroke: "var(--muted)",
      "stroke-dasharray": "5 4",
    });
    for (const { lengths } of profiles)
      plane.path(
        curve((one) => lengths[one - 1] ?? 0),
        { stroke: "var(--muted)", opacity: 0.5, "stroke-width": 1.2 },
      );
    if (profiles.length === 0) return;
    plane.path(
      curve((one) => at(norm, one)),
      { stroke: "var(--series-1)", "stroke-width": 2.5 },
    );
    plane.line([axis, 0], [axis, at(norm, axis)], { stroke: "var(--ink)", "stroke-dasharray": "2 3" });
    plane.dot([axis, at(norm, axis)], 5, { fill: "var(--series-1)" });
  });
  const show = (state: Shown) => {
    plane.changed();
    const one = nearest(state.norm);
    if (one === undefined) return;
    const [longest = 0, shortest = 0, chosen = 0] = [0, axes.max - 1, state.axis - 1].map(
      (index) => one.lengths[index],
    );
    ready(plane.element);
    plane.element.dataset["at"] = `${Math.round(state.norm)} ${number(chosen)}`;
    const words = `${one.name}: the longest axis has length ${number(longest)}, the shortest ${number(shortest)}, axis ${state.axis} has ${number(chosen)}.`;
    page.slot("profile-says").textContent = words;
    page.say(words);
  };
  const gains = gainsOf(await weights());
  profiles = await Promise.all(
    gains.map(async ([name, gain]) => ({
      name,
      lengths: Float64Array.from((await image(page.engine, { kind: "layer", width, eps, gain })).semiAxes)
        .sort()
        .reverse(),
    })),
  );
  page.onChange(show);
}
