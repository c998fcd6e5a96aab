import { newest } from "../../engine/client";
import { ellipse, outputs, places, verify } from "../../engine/signature";
import type { Precision, RowVerdict } from "../../engine/signature";
import { el, table } from "../../shared/dom";
import { number } from "../../shared/format";
import { chapter } from "../chapter";
import type { Page } from "../chapter";
import { choice, controls, entrySlider } from "../controls";
import { ready } from "../figure";
import type { Table } from "../figure";
import { entryInText } from "../numbers";
import { PlaneFigure } from "../plane";
import type { Point } from "../plane";
import { player } from "../player";
import { finlayson } from "../sources";
import {
  defaults,
  doors,
  gains,
  modelA,
  modelB,
  outputCount,
  precisions,
  rules,
  sourceOf,
  sources,
} from "./signature_state";
import type { State } from "./signature_state";
import text from "./signature.html";

/** Points around an ellipse. */
const around = 180;
/** Units up to which an output is consistent, as `signature verify` has it. */
const usual = 8;
/** Powers of ten on the ruler. */
const ruler = { least: -2, most: 9 };
const tints = ["var(--series-1)", "var(--series-2)"] as const;
const names = ["A", "B"] as const;

/** What is drawn: both ellipses, the outputs, and the verdicts of each model about each output. */
interface Shown {
  curves: [Point[], Point[]];
  points: Point[];
  logits: Float64Array;
  verdicts: [RowVerdict[], RowVerdict[]];
}

const pairs = (values: Float64Array): Point[] =>
  Array.from({ length: values.length / 2 }, (_, i) => [values[2 * i] ?? 0, values[2 * i + 1] ?? 0]);

const said = ({ verdict, proved }: RowVerdict): string => (proved ? `${verdict}, proved` : verdict);
const countOf = (verdicts: RowVerdict[], asked: RowVerdict["verdict"]): number =>
  verdicts.filter(({ verdict }) => verdict === asked).length;

/** A distance in units on the ruler, which ends at both sides. */
const onRuler = (units: number): number =>
  Math.min(ruler.most, Math.max(ruler.least, Math.log10(Math.max(Math.abs(units), 1e-12))));

const units = (value: number): string => number(Math.abs(value), 2);

function tableOf(shown: Shown | null): Table {
  return {
    columns: [
      "output",
      "logit 1",
      "logit 2",
      "logit 3",
      ...names.flatMap((name) => [`units from ${name}`, `verdict on ${name}`]),
    ],
    rows: (shown?.points ?? []).map((_, i) => [
      i + 1,
      ...shown!.logits.subarray(3 * i, 3 * i + 3),
      ...shown!.verdicts.flatMap((verdicts) => [verdicts[i]!.units, said(verdicts[i]!)]),
    ]),
  };
}

function readout({ verdicts }: Shown): string {
  const parts = verdicts.map((all, model) => {
    const [fits, open] = [countOf(all, "consistent"), countOf(all, "cannot tell")];
    const proved = all.filter((one) => one.proved).length;
    const refused = all.length - fits - open;
    const rest = [
      refused === 0 ? "" : `${refused} are not its own, ${proved} of them with a proof`,
      open === 0 ? "" : `${open} cannot be told`,
    ].filter((part) => part !== "");
    return `Model ${names[model]}: ${fits} of ${all.length} outputs are consistent${rest.length === 0 ? "" : `; ${rest.join(", ")}`}.`;
  });
  return parts.join(" ");
}

/** The range that holds both ellipses and the outputs, in steps, so that it does not move with every gain. */
function reachOf({ curves, points }: Shown): number {
  const most = [...curves.flat(), ...points].reduce((sum, [x, y]) => Math.max(sum, Math.abs(x), Math.abs(y)), 1);
  return Math.ceil(1.08 * most);
}

export default chapter<State>({
  text,
  defaults,
  rules,
  sources: [finlayson],
  presets: [
    {
      name: "A gain 1 % larger",
      claim:
        "By eye the outputs lie on the ellipse. In units of float32 rounding they are up to some hundred thousand away from it.",
      state: { gain: [1, 1.818, 0.6] },
    },
    {
      name: "The same in bfloat16",
      claim: "In bfloat16, 1 % is no more than rounding: every output is consistent with the changed gains.",
      state: { gain: [1, 1.818, 0.6], precision: "bfloat16" },
    },
    {
      name: "Outputs of B",
      claim:
        "They lie on the orange ellipse and nowhere else. Some come near the blue one, where the two cross, but none within a rounding.",
      state: { from: "other" },
    },
    {
      name: "All gains doubled",
      claim:
        "The ellipse is twice as large about the same middle. Every recorded output is inside of it, and none is on it.",
      state: { gain: [2, 3.6, 1.2] },
    },
    {
      name: "A dead gain",
      claim: "With one gain at zero the ellipse is still one, seen from a direction in which it is thinner.",
      state: { gain: [1, 1.8, 0], from: "now" },
    },
  ],
  doors,
  mount: (page) => figures(page),
});

function planeOf(page: Page<State>, read: () => Shown | null): PlaneFigure {
  const plane = new PlaneFigure({
    id: "signature",
    description: "The ellipses of models A and B in the plane of logits without their mean, and the outputs.",
    caption:
      "Blue: the ellipse of A. Orange: that of B. Full dots are consistent with the model of their colour, crosses with neither, rings cannot be told.",
    x: [-5, 5],
    y: [-5, 5],
    xTitle: "(ℓ₁ − ℓ₂)/√2",
    yTitle: "(ℓ₁ + ℓ₂ − 2ℓ₃)/√6",
    table: () => tableOf(read()),
  });
  page.keep(plane);
  plane.painted(() => {
    const now = read();
    if (now === null) return;
    now.curves.forEach((curve, model) => plane.path(curve, { stroke: tints[model]!, "stroke-width": 2 }));
    const reach = reachOf(now);
    const arm = 0.016 * reach;
    now.points.forEach(([x, y], i) => {
      const fits = now.verdicts.findIndex((all) => all[i]!.verdict === "consistent");
      if (fits >= 0) return plane.dot([x, y], 5, { fill: tints[fits]!, stroke: "var(--paper)", "stroke-width": 1 });
      if (now.verdicts.some((all) => all[i]!.verdict === "cannot tell"))
        return plane.dot([x, y], 4.5, { fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 1.5 });
      for (const turn of [1, -1])
        plane.line([x - arm, y - turn * arm], [x + arm, y + turn * arm], { stroke: "var(--ink)", "stroke-width": 1.8 });
    });
  });
  return plane;
}

function rulerOf(page: Page<State>, read: () => Shown | null): PlaneFigure {
  const plane = new PlaneFigure({
    id: "units",
    description: "The distance of each output from both ellipses, in units of rounding, in powers of ten.",
    caption:
      "Dots: from the ellipse of A. Squares: from that of B. Left of the dashed line, at 8 units, an output is consistent.",
    x: [ruler.least, ruler.most],
    y: [0, outputCount + 1],
    xTitle: "distance in units of rounding, as a power of ten",
    yTitle: "output",
    aspect: 0.86,
    table: () => tableOf(read()),
  });
  page.keep(plane);
  plane.painted(() => {
    const now = read();
    const line = Math.log10(usual);
    plane.line([line, 0], [line, outputCount + 1], { stroke: "var(--ink)", "stroke-dasharray": "4 4" });
    now?.points.forEach((_, i) => {
      const [a, b] = now.verdicts.map((all): Point => [onRuler(all[i]!.units), i + 1]) as [Point, Point];
      plane.line(a, b, { stroke: "var(--rule)" });
      const half = 0.09;
      const tall = half * 1.6;
      const square: Point[] = [
        [-half, -tall],
        [half, -tall],
        [half, tall],
        [-half, tall],
      ].map(([x, y]) => [b[0] + x!, b[1] + y!]);
      plane.path(square, { fill: tints[1], stroke: "none" });
      plane.dot(a, 4.5, { fill: tints[0] });
    });
  });
  return plane;
}

/** Mounts the figures; done when they have been drawn. */
function figures(page: Page<State>): Promise<void> {
  let shown: Shown | null = null;
  const read = () => shown;
  const [plane, distances] = [planeOf(page, read), rulerOf(page, read)];
  page.slot("plane").replaceWith(plane.element);
  page.slot("ruler").replaceWith(distances.element);
  page
    .slot("controls")
    .append(
      controls(
        "Outputs",
        choice(page, "Outputs of", "from", sources),
        choice(page, "Numbers in", "precision", precisions),
      ),
    );
  const range = { ...gains, step: 0.01 };
  for (const i of [0, 1, 2]) entryInText(page, `gain ${i + 1}, in the text`, "gain", i, range);
  const move = player(page, {
    read: ({ gain: [, second = 0] }) => second,
    write: (value) => ({ gain: page.store.get().gain.map((old, i) => (i === 1 ? Number(value.toFixed(2)) : old)) }),
    from: 0.6,
    to: () => defaults.gain[1]!,
    pace: 4000,
    label: "Move gain 2",
    seen: { element: plane.element, opens: true },
  });
  page
    .slot("gains")
    .append(
      controls(
        "Gains of model A",
        ...[0, 1, 2].map((i) => entrySlider(page, `gain ${i + 1} of A`, "gain", i, range)),
        move,
      ),
    );
  const host = el("div", { class: "table-scroll", tabindex: 0, role: "group", "aria-label": "Every output" });
  page.slot("table").append(host);

  const show = (now: Shown) => {
    shown = now;
    const reach = reachOf(now);
    plane.ranges([-reach, reach], [-reach, reach]);
    for (const figure of [plane, distances]) {
      figure.changed();
      ready(figure.element);
    }
    const rows = now.points.map((_, i) => [
      String(i + 1),
      ...now.verdicts.flatMap((all) => [units(all[i]!.units), said(all[i]!)]),
    ]);
    host.replaceChildren(
      table(
        "Each output against both ellipses",
        ["Output", "Units from A", "Of A?", "Units from B", "Of B?"],
        rows,
        [0, 1, 3],
      ),
    );
    const words = readout(now);
    page.slot("readout").textContent = words;
    page.say(words);
    plane.element.dataset["consistent"] = now.verdicts.map((all) => countOf(all, "consistent")).join(" ");
    plane.element.dataset["refused"] = now.verdicts.map((all) => countOf(all, "not this model")).join(" ");
    plane.element.dataset["farthest"] = Math.max(...now.verdicts[0].map((one) => Math.abs(one.units))).toPrecision(3);
  };
  const draw = async (state: State): Promise<void> => {
    const a = modelA(state);
    const precision = state.precision as Precision;
    const logits = Float64Array.from(await outputs(page.whole(), sourceOf(state), precision, outputCount, state.seed));
    const [curveA, curveB, points, ofA, ofB] = await Promise.all([
      ellipse(page.whole(), a, around),
      ellipse(page.whole(), modelB, around),
      places(page.whole(), logits),
      verify(page.whole(), a, logits, precision),
      verify(page.whole(), modelB, logits, precision),
    ]);
    plane.element.dataset["gain"] = state.gain.join(" ");
    show({ curves: [pairs(curveA), pairs(curveB)], points: pairs(points), logits, verdicts: [ofA, ofB] });
  };
  return new Promise((done, fail) => {
    const run = newest((state: State) => draw(state).then(done, fail));
    page.onChange((state) => run(state));
  });
}
