import { Group } from "three";
import { newest } from "../../engine/client";
import { normals } from "../../engine/random";
import { attentionFigure, attentionWeights, selectKeys } from "../../engine/selectability";
import type { Verdict } from "../../engine/selectability";
import { button, el } from "../../shared/dom";
import { number, percent, plural } from "../../shared/format";
import { theme } from "../../shared/theme";
import { chapter } from "../chapter";
import type { Doors, Page } from "../chapter";
import { choice, controls, entrySlider, slider, toggle } from "../controls";
import { cppOf, numbersOf, pythonOf } from "../doors";
import { ChartFigure, ready } from "../figure";
import { entryInText, numberInText } from "../numbers";
import { PlaneFigure } from "../plane";
import type { Point } from "../plane";
import { player } from "../player";
import { SpaceFigure } from "../scene";
import { Labels } from "../space_marks";
import { followStory } from "../scrolly";
import { brody } from "../sources";
import { mountLayers } from "./selectability_layers";
import { majorityDoors, mountMajority } from "./selectability_majority";
import { paintPlane, paintSpace } from "./selectability_pictures";
import type { Scene } from "./selectability_pictures";
import { defaults, most, rules, sharpness } from "./selectability_state";
import type { State } from "./selectability_state";
import { mountTable } from "./selectability_table";
import text from "./selectability.html";

type Store = Page<State>["store"];

const widthOf = (state: State): 2 | 3 => (state.dimension === 3 ? 3 : 2);
const keysOf = (state: State): number[] => (widthOf(state) === 2 ? state.keys : state.solid);
const queryOf = (state: State): number[] => {
  const query = widthOf(state) === 2 ? state.query : state.query3;
  return Array.from({ length: widthOf(state) }, (_, i) => query[i] ?? 0);
};
const countOf = (state: State): number => Math.floor(keysOf(state).length / widthOf(state));
const withKeys = (state: State, keys: number[]): Partial<State> => (widthOf(state) === 2 ? { keys } : { solid: keys });
const withQuery = (state: State, query: number[]): Partial<State> =>
  widthOf(state) === 2 ? { query } : { query3: query };
const rounded = (value: number): number => Number(value.toFixed(3));
/** The direction of a query's first two numbers in degrees, and the query turned into another one. */
const turnOf = ([x = 0, y = 0]: number[]): number => ((Math.atan2(y, x) * 180) / Math.PI + 360) % 360;
const turned = ([x = 0, y = 0, ...rest]: number[], degrees: number): number[] => {
  const [length, angle] = [Math.hypot(x, y), (degrees * Math.PI) / 180];
  return [length * Math.cos(angle), length * Math.sin(angle), ...rest].map(rounded);
};
const chosenOf = (state: State): number => Math.min(Math.max(0, Math.round(state.chosen)), countOf(state) - 1);

/** The keys as one argument of the command. */
const rowsOf = (state: State): string =>
  Array.from({ length: countOf(state) }, (_, i) =>
    numbersOf(keysOf(state).slice(i * widthOf(state), (i + 1) * widthOf(state))),
  ).join(";");

function wordsOf(state: State): string[] {
  const steps = [...(state.project ? ["project"] : []), ...(state.scale ? ["scale"] : [])];
  const norm = steps.length === 0 ? [] : ["--norm", "layer", "--eps", "0", "--step", steps.join(",")];
  return ["select", ...norm, "--", rowsOf(state)];
}

/** The selection of the state's keys, elsewhere. */
const selectionDoors = (state: State): Doors => ({
  command: `normscope ${wordsOf(state).slice(0, -1).join(" ")} '${rowsOf(state)}'`,
  cpp: cppOf(
    ["norm/norm", "selectability/select"],
    `const std::size_t width = ${widthOf(state)};
std::vector<double> values{${numbersOf(keysOf(state))}};
const normscope::MatrixView<double> keys(values.data(), values.size() / width, width);
${state.project || state.scale ? "const normscope::NormSpec norm{.width = width, .eps = 0.0};\n" : ""}${state.project ? "normscope::norm::project(norm, keys, keys);\n" : ""}${state.scale ? "normscope::norm::scale(norm, keys, keys);\n" : ""}for (const auto& key : normscope::selectability::select_keys(keys).keys) {
  fmt::print("{} by {}\\n", to_string(key.answer), to_string(key.proof));
}`,
  ),
  python: pythonOf(wordsOf(state)),
});

/** Whether a link is to the majority task: something of it differs from the defaults. */
const asksForMajority = (state: State): boolean =>
  (["taskWidth", "taskEqual", "taskAt", "taskSeed"] as const).some((key) => state[key] !== defaults[key]);

export default chapter<State>({
  text,
  defaults,
  rules,
  sources: [brody],
  presets: [
    {
      name: "Three keys inside",
      claim: "Keys 6, 7 and 8 lie inside the hull: whatever you ask, another key scores higher.",
      state: {},
    },
    {
      name: "The same, scaled",
      claim: "All keys now have one length. Each is a corner, so each can win.",
      state: { scale: true },
    },
    {
      name: "LayerNorm of three numbers",
      claim: "Projected onto a plane and scaled onto a circle: ten corners, no key lost.",
      state: { dimension: 3, project: true, scale: true, chosen: 5 },
    },
    {
      name: "Projection alone",
      claim: "A plane through the origin holds fewer corners than space did: more keys are lost, not fewer.",
      state: { dimension: 3, project: true, chosen: 5 },
    },
    {
      name: "The query that ignores",
      claim: "Along (1, 1, 1) all projected keys score the same: attention is exactly uniform.",
      state: { dimension: 3, project: true, scale: true, query3: [1.2, 1.2, 1.2] },
    },
    {
      name: "Queries in three numbers",
      claim: "Below, the majority task: with LayerNorm all keys are on a circle, and queries turn towards its axis.",
      state: { taskWidth: 3 },
    },
    {
      name: "Majority at equal length",
      claim: "Below, the majority task: without the projection but with keys as long, it is learned as fast.",
      state: { taskEqual: true },
    },
    {
      name: "Two numbers are one sign",
      claim: "LayerNorm of two numbers leaves two points. Keys of one sign tie for every query, so none of them wins.",
      state: { project: true, scale: true, keys: [-2, 0.5, -1, 1.75, 1, 1.5, 2.25, 0, 1.25, -1.5], chosen: 1 },
    },
  ],
  doors: (state) => (asksForMajority(state) ? majorityDoors(state) : selectionDoors(state)),
  mount(page) {
    const { store } = page;
    let shown: Scene | null = null;

    const table = () => ({
      columns: ["key", ...["x", "y", "z"].slice(0, shown?.width), "answer", "proof", "margin", "residual"],
      rows: (shown?.selection.verdicts ?? []).map((verdict, index) => [
        index,
        ...(shown?.selection.keys.subarray(index * shown.width, (index + 1) * shown.width) ?? []),
        verdict.answer,
        verdict.proof.replaceAll("_", " "),
        verdict.margin,
        verdict.residual,
      ]),
    });
    const plane = new PlaneFigure({
      id: "keys",
      description: "Keys in the plane, their hull and a query; keys that no query selects are rings.",
      x: [-3, 3],
      y: [-2.3, 2.3],
      table,
    });
    const space = new SpaceFigure({
      id: "keys-in-space",
      description:
        "Keys in space, their hull and a query. Keys and the query's tip can be dragged, or moved by the sliders.",
      eye: [7.4, 2.2, 3.4],
      table,
    });
    const marks = new Group();
    const labels = new Labels();
    space.add(marks, labels.group);
    for (const part of [plane, space, labels]) page.keep(part);
    page.slot("picture").append(plane.element, space.element);
    page.onChange((state) => {
      plane.element.hidden = widthOf(state) !== 2;
      space.element.hidden = widthOf(state) !== 3;
    });

    const moveKey = (index: number, to: number[]) => {
      const state = store.get();
      const keys = [...keysOf(state)];
      keys.splice(index * to.length, to.length, ...to.map(rounded));
      store.drag({ ...withKeys(state, keys), chosen: index });
    };
    const removeKey = (index: number) => {
      const state = store.get();
      if (countOf(state) <= 2) return;
      const keys = [...keysOf(state)];
      keys.splice(index * widthOf(state), widthOf(state));
      store.commit({ ...withKeys(state, keys), chosen: Math.max(0, index - 1) });
    };
    plane.painted(() => shown !== null && shown.width === 2 && paintPlane(plane, shown));
    let grips: ReturnType<typeof paintSpace> = [];
    space.draggable({
      objects: () => grips,
      chosen: (id) => id !== "query" && store.show({ chosen: Number(id.slice(4)) }),
      moved: (id, to) => (id === "query" ? store.drag({ query3: to.map(rounded) }) : moveKey(Number(id.slice(4)), to)),
      done: () => store.commit(),
    });

    const bars = new ChartFigure("attention", () => ({
      columns: ["key", "attention"],
      rows: [...weights].map((weight, index) => [index, weight]),
    }));
    page.keep(bars);
    page.slot("bars").append(bars.element);
    let weights: Float64Array = new Float64Array();
    let barsOf = "";

    const draw = newest(async (state: State) => {
      const width = widthOf(state);
      const selection = await selectKeys(page.engine, keysOf(state).slice(0, countOf(state) * width), width, state);
      const query = queryOf(state);
      const sharp = query.map((value) => value * state.sharp);
      weights = await attentionWeights(page.engine, selection.keys, width, sharp);
      const chosen = chosenOf(state);
      shown = {
        original: keysOf(state),
        selection,
        width,
        moved: state.project || state.scale,
        scaled: state.scale,
        chosen,
        query,
      };
      if (width === 2) {
        plane.handles(handlesOf(store, shown, moveKey, removeKey));
        plane.changed();
        ready(plane.element);
      } else {
        grips = paintSpace(space, marks, labels, shown);
        space.element.dataset["words"] = labels.words;
        space.changed();
      }
      tell(page, shown, weights);
      const rows = selection.verdicts.map(({ answer }, key) => ({ key, weight: weights[key], answer }));
      const now = `${rows.length} ${theme()}`;
      if (now === barsOf) return bars.update("weights", rows);
      barsOf = now;
      const figure = await attentionFigure(page.engine, selection.keys, width, sharp);
      await bars.draw(figure, "Attention weights of the query, as bars.");
    });

    mountControls(page, removeKey);
    page.onChange(draw);
    followStory(page, (step) => store.tell(reading[step] ?? {}));
    mountTable(page);
    mountLayers(page);
    mountMajority(page);
  },
});

/** The state shown at each section of the text. */
const reading: Record<string, Partial<State>> = {
  hull: { dimension: 2, project: false, scale: false },
  proof: { dimension: 2, project: false, scale: false },
  attention: { dimension: 2 },
  scale: { dimension: 2, project: false, scale: true },
  project: { dimension: 3, project: true, scale: false, chosen: 5 },
  both: { dimension: 3, project: true, scale: true },
};

function handlesOf(
  store: Store,
  scene: Scene,
  moveKey: (index: number, to: number[]) => void,
  removeKey: (index: number) => void,
) {
  const { selection, moved } = scene;
  const keys = selection.verdicts.map((verdict, index) => ({
    id: `key ${index}`,
    label: `Key ${index}, ${verdict.answer}`,
    at: () => {
      const { keys: now } = store.get();
      return [now[2 * index] ?? 0, now[2 * index + 1] ?? 0] as Point;
    },
    look: `key ${moved ? "ghost" : "bare"}`,
    radius: moved ? 4 : 9,
    move: (to: Point) => moveKey(index, to),
    done: () => store.commit(),
    chosen: () => store.get().chosen !== index && store.show({ chosen: index }),
    remove: () => removeKey(index),
  }));
  const query = {
    id: "query",
    label: "Query",
    at: () => queryOf(store.get()) as Point,
    look: "query",
    radius: 6,
    move: (to: Point) => store.drag({ query: to }),
    done: () => store.commit(),
  };
  return [...keys, query];
}

function mountControls(page: Page<State>, removeKey: (index: number) => void): void {
  const { store } = page;
  page.slot("switches").append(
    controls(
      "The keys",
      choice(page, "Keys", "dimension", [
        [2, "in the plane"],
        [3, "in space"],
      ]),
      toggle(page, "project", "project"),
      toggle(page, "scale", "scale"),
      player(page, {
        read: (state) => turnOf(queryOf(state)),
        write: (turn) => withQuery(store.get(), turned(queryOf(store.get()), turn)),
        from: turnOf(defaults.query),
        to: () => turnOf(defaults.query) + 360,
        pace: 25,
        label: "Turn the query",
        seen: { element: page.slot("picture"), opens: true },
      }),
    ),
  );
  const random = async (count: number, seed: number) => {
    const width = widthOf(store.get());
    const drawn = await normals(page.engine, count * width, seed);
    const keys = [...drawn].map((value) => rounded(Math.min(2.2, Math.max(-2.2, value))));
    store.commit({ ...withKeys(store.get(), keys), seed });
  };
  const number = el("input", { type: "number", min: 2, max: most, id: "key-count" });
  page.onChange((state) => (number.value = String(countOf(state))));
  number.addEventListener("change", () => {
    const count = Math.min(most, Math.max(2, Math.round(Number(number.value)) || 2));
    void random(count, store.get().seed);
  });
  page.slot("sets").append(
    controls(
      "Other keys",
      button("New random keys", () => void random(countOf(store.get()), store.get().seed + 1), { class: "action" }),
      el("div", { class: "control" }, el("label", { for: "key-count" }, "how many"), number),
      button("Remove this key", () => removeKey(chosenOf(store.get())), { class: "action" }),
    ),
  );
  const coordinates = page.slot("coordinates");
  // Sliders for the chosen key and the query: keyboard access in space, and precise values in the plane.
  const pick = el("select", { id: "chosen-key" });
  pick.addEventListener("change", () => store.commit({ chosen: Number(pick.value) }));
  const entry = (axis: number) => {
    const name = "xyz"[axis] ?? "";
    const input = el("input", { type: "range", min: -3, max: 3, step: 0.01, "aria-label": `${name} of the key` });
    input.addEventListener("input", () => {
      const state = store.get();
      const keys = [...keysOf(state)];
      keys[chosenOf(state) * widthOf(state) + axis] = Number(input.value);
      store.drag(withKeys(state, keys));
    });
    input.addEventListener("change", () => store.commit());
    const output = el("output", {});
    const control = el("div", { class: "control slider" }, el("span", {}, name), input, output);
    page.onChange((state) => {
      control.hidden = axis >= widthOf(state);
      const value = keysOf(state)[chosenOf(state) * widthOf(state) + axis] ?? 0;
      input.value = String(value);
      output.textContent = String(value);
    });
    return control;
  };
  page.onChange((state) => {
    if (pick.options.length !== countOf(state))
      pick.replaceChildren(...Array.from({ length: countOf(state) }, (_, i) => el("option", { value: i }, `key ${i}`)));
    pick.value = String(chosenOf(state));
  });
  coordinates.append(
    controls(
      "The chosen key",
      el("div", { class: "control" }, el("label", { for: "chosen-key" }, "Chosen"), pick),
      entry(0),
      entry(1),
      entry(2),
    ),
  );
  const range = { min: -3, max: 3, step: 0.01 };
  const sharp = { ...sharpness, step: 0.1 };
  numberInText(page, "sharpness, in the text", "sharp", sharp);
  for (const i of [0, 1]) entryInText(page, `query ${"xy"[i]}, in the text`, "query", i, range);
  const flat = controls("The query", ...[0, 1].map((i) => entrySlider(page, `query ${"xy"[i]}`, "query", i, range)));
  const solid = controls(
    "The query",
    ...[0, 1, 2].map((i) => entrySlider(page, `query ${"xyz"[i]}`, "query3", i, range)),
  );
  page.onChange((state) => ([flat.hidden, solid.hidden] = [widthOf(state) === 3, widthOf(state) === 2]));
  page.slot("query").append(flat, solid, controls("Sharpness", slider(page, "sharpness", "sharp", sharp)));
}

/** The answer and its proof, in words. */
function tell(page: Page<State>, scene: Scene, weights: Float64Array): void {
  const { selection, chosen } = scene;
  const lost = selection.verdicts.filter(({ answer }) => answer === "unselectable").length;
  const verdict = selection.verdicts[chosen];
  const counted = `${plural(selection.verdicts.length, "key")}: ${lost === 0 ? "each can be selected" : `${lost} can never be selected`}.`;
  const words = verdict === undefined ? "" : proofOf(verdict, chosen);
  const use = button(
    "Ask with its query",
    () => {
      const length = Math.hypot(...(verdict?.query ?? [])) || 1;
      page.store.commit(
        withQuery(
          page.store.get(),
          [...(verdict?.query ?? [])].map((value) => rounded((1.8 * value) / length)),
        ),
      );
    },
    { class: "action" },
  );
  const place = page.slot("answer");
  const again = place.dataset["words"] === counted + words;
  if (!again) {
    place.dataset["words"] = counted + words;
    place.replaceChildren(
      el("strong", {}, counted),
      ` ${words} `,
      ...(verdict?.answer === "selectable" && verdict.query.length > 0 ? [use] : []),
    );
  }
  const best = weights.indexOf(Math.max(...weights));
  page.slot("winner").textContent =
    `The query gives ${percent(weights[best] ?? 0)} of its attention to key ${best}, and ${percent(weights[chosen] ?? 0)} to the chosen key ${chosen}.`;
  const { dataset } = page.slot("picture");
  dataset["lost"] = String(lost);
  dataset["answer"] = verdict?.answer ?? "";
  dataset["verified"] = String(selection.verdicts.every(({ verified }) => verified));
  dataset["best"] = String(best);
  dataset["query"] = scene.query.join(" ");
  dataset["keys"] = [...selection.keys].map((value) => value.toFixed(3)).join(" ");
  page.say(`${counted} ${words}`);
}

function proofOf({ answer, proof, margin, residual, others, shares, verified }: Verdict, chosen: number): string {
  const checked = verified ? "checked" : "not checked";
  if (proof === "twin") return `Key ${chosen} ties with an equal key for every query, so neither ever leads.`;
  if (answer === "selectable")
    return `Key ${chosen} can: for the query along the arrow it leads every other key by ${number(margin)} or more (${checked}).`;
  if (answer === "undecided") return `Key ${chosen} is too near to call.`;
  const mix = [...others].map((other, i) => `${percent(shares[i] ?? 0)} of key ${other}`).join(" + ");
  return `Key ${chosen} cannot: it is ${mix}, to ${number(residual, 1)} (${checked}), and an average never scores above the best of its keys.`;
}
