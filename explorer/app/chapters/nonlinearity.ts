import { groupCurvature } from "../../engine/nonlinearity";
import type { GroupCurvature } from "../../engine/nonlinearity";
import { newest } from "../../engine/client";
import { atLeast, kinds, number } from "../../shared/format";
import { theme } from "../../shared/theme";
import { chapter } from "../chapter";
import type { Page } from "../chapter";
import { choice, controls, slider } from "../controls";
import { cppOf, numbersOf, pythonOf } from "../doors";
import { ChartFigure } from "../figure";
import { numberInText } from "../numbers";
import { ni } from "../sources";
import { mountMerge } from "./nonlinearity_merge";
import { defaults, rowCounts, rules, widths } from "./nonlinearity_state";
import type { State } from "./nonlinearity_state";
import { mountXor } from "./nonlinearity_xor";
import text from "./nonlinearity.html";

const rowsOf = (points: number[]): string =>
  Array.from({ length: points.length / 2 }, (_, i) => numbersOf(points.slice(2 * i, 2 * i + 2))).join(";");

const wordsOf = (state: State): string[] => [
  "nets",
  "build",
  "--mode",
  state.mode,
  "--seed",
  String(state.seed),
  "--drop-conflicts",
  "-o",
  "net.safetensors",
  "--",
  rowsOf(state.points),
  numbersOf(state.labels),
];

/** A grid in two colours: equal distances, which the published algorithm takes for equal points. */
const grid = Array.from({ length: 12 }, (_, i) => [(i % 4) - 1.5, Math.floor(i / 4) - 1]).flat();

export default chapter<State>({
  text,
  defaults,
  rules,
  sources: [ni],
  presets: [
    {
      name: "XOR and its fold",
      claim: "LSSR is 1 for every linear map and 0 behind one LN: the fold lays opposite corners on each other.",
      state: {},
    },
    {
      name: "A direction that mixes",
      claim:
        "Along an axis each corner lands on one of the other class. No fold separates points that the projection has made equal.",
      state: { angle: 0 },
    },
    {
      name: "Two clusters, no fold needed",
      claim: "Moved apart, the classes are separated by a line: a linear map does it, and the LSSR was near 0 before.",
      state: { corners: [-1.4, -1, -1.2, 1.1, 1.3, 1, 1.5, -1.1], angle: 0 },
    },
    {
      name: "Three colours",
      claim: "Three classes, the same folds: at the end each colour is one run of the line.",
      state: { labels: [0, 1, 2, 0, 2, 1, 0, 1, 2, 0] },
    },
    {
      name: "A grid, folded sharply",
      claim: "Points at equal distances in a checkered pattern: the stable variant gives all twelve their label.",
      state: { points: grid, labels: [0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1], mode: "stable" },
    },
    {
      name: "RMSNorm in groups",
      claim: "Without the projection groups of two curve most: the bound is g(N − g)/(N − 1).",
      state: { kind: "rms" },
    },
  ],
  doors: (state) => ({
    command: `normscope ${wordsOf(state).slice(0, -2).join(" ")} '${rowsOf(state.points)}' ${numbersOf(state.labels)}`,
    cpp: cppOf(
      ["nets/construct"],
      `const std::vector<double> points{${numbersOf(state.points)}};
const std::vector<std::int64_t> labels{${numbersOf(state.labels)}};
const auto made = normscope::nets::construct({points.data(), labels.size(), 2}, labels,
                                              {.mode = normscope::nets::Mode::${state.mode}, .seed = ${state.seed}, .first_label_wins = true});
fmt::print("{} layers, {} of {} right\\n", made.net.layers.size(), made.correct, made.total);`,
    ),
    python: pythonOf(wordsOf(state)),
  }),
  mount(page) {
    mountXor(page);
    mountMerge(page);
    mountCurvature(page);
  },
});

function mountCurvature(page: Page<State>): void {
  let groups: GroupCurvature[] = [];
  const chart = new ChartFigure("group-curvature", () => ({
    columns: ["groups", "mean", "least", "bound"],
    rows: groups.map((entry) => [entry.groups, entry.ratio, entry.least, entry.bound ?? ""]),
  }));
  page.keep(chart);
  page.slot("curvature").append(chart.element);
  const counts = { ...rowCounts, step: 10 };
  numberInText(page, "random inputs, in the text", "rows", counts);
  numberInText(page, "entries, in the text", "width", { values: widths });
  page.slot("curvature-controls").append(
    controls(
      "The norm and its inputs",
      choice(
        page,
        "Norm",
        "kind",
        (["layer", "rms"] as const).map((kind) => [kind, kinds[kind].title]),
      ),
      choice(
        page,
        "entries",
        "width",
        widths.map((width) => [width, String(width)]),
      ),
      slider(page, "random inputs", "rows", counts),
      slider(page, "seed", "rowSeed", { min: 1, max: 50, step: 1 }),
    ),
  );
  let shown = "";
  const draw = newest(async (state: State) => {
    const task = JSON.stringify([state.kind, state.width, state.rows, state.rowSeed, theme()]);
    if (task === shown) return;
    shown = task;
    const kind = state.kind === "rms" ? "rms" : "layer";
    const found = await groupCurvature(page.engine, { kind, width: state.width, eps: 0 }, state.rows, state.rowSeed);
    groups = found.groups;
    const best = groups.reduce((a, b) => ((b.bound ?? 0) > (a.bound ?? 0) ? b : a));
    page.slot("curvature-words").textContent =
      `${best.groups} groups of ${state.width / best.groups}: at least ${atLeast(best.bound, number)} times as curved for every ` +
      `input, ${number(best.least)} times at the least of these ${state.rows}.`;
    chart.element.dataset["bound"] = String(best.bound);
    chart.element.dataset["groups"] = groups.map((entry) => entry.groups).join(" ");
    await chart.draw(found.figure, "Curvature over that of one group, over the number of groups, with its bound.");
  });
  page.onChange(draw);
}
