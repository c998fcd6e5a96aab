import { MajorityTraining, trainingSizes } from "../../engine/majority";
import type { Look, MajoritySpec } from "../../engine/majority";
import { button } from "../../shared/dom";
import { number, percent } from "../../shared/format";
import type { Doors, Page } from "../chapter";
import { choice, controls, slider, toggle } from "../controls";
import { cppOf } from "../doors";
import { PlaneFigure } from "../plane";
import type { Point } from "../plane";
import { hold, whenSeen } from "../player";
import { still } from "../scrolly";
import { taskSteps } from "./selectability_state";
import type { State } from "./selectability_state";

/** Steps between two looks, which the slider goes back to. */
const together = 10;
/** Milliseconds between two drawings of a training under way. */
const drawEvery = 120;

/** What the curves are over, with room for the last tick. */
const steps: [number, number] = [0, 1.05 * taskSteps.max];

/** One of the two networks side by side. */
interface Arm {
  training: MajorityTraining;
  looks: Look[];
}
type Arms = [projected: Arm, bare: Arm];

const widthOf = (state: State): 3 | 8 => (state.taskWidth === 3 ? 3 : 8);
const names = ["LayerNorm", "without projection"] as const;
const specsOf = (state: State): [MajoritySpec, MajoritySpec] => {
  const width = widthOf(state);
  return [
    { width, project: true, squaredLength: width },
    { width, project: false, squaredLength: state.taskEqual ? width : 1 / width },
  ];
};
const inks = ["var(--series-1)", "var(--series-2)"];
const lines = [{}, { "stroke-dasharray": "6 4" }];
const letter = (index: number): string => String.fromCharCode(97 + index);

/**
 * A vector by its true length and its true angle to all-ones, which is up; of the directions around all-ones, two tell
 * where it is. Of three numbers that is all of it.
 */
function upright(vector: Float64Array): [number, number, number] {
  const width = vector.length;
  const up = vector.reduce((sum, value) => sum + value, 0) / Math.sqrt(width);
  const [a = 0, b = 0, c = 0] = vector;
  const around = Math.atan2((a + b - 2 * c) / Math.sqrt(6), (a - b) / Math.SQRT2);
  const radius = Math.sqrt(Math.max(0, vector.reduce((sum, value) => sum + value * value, 0) - up * up));
  return [radius * Math.cos(around), radius * Math.sin(around), up];
}

/** How far the eye is above the plane of the keys. */
const tilt = (18 * Math.PI) / 180;
/** The place on paper of what stands there, and how near it is to the eye. */
function seen([x, y, z]: [number, number, number], turn: number): { at: Point; near: number } {
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  const [across, deep] = [x * cos - y * sin, x * sin + y * cos];
  return { at: [across, z * Math.cos(tilt) + deep * Math.sin(tilt)], near: -deep };
}

/** The same task with the paper's sequences, in the lab; and one of the two networks in C++. */
export function majorityDoors(state: State): Doors {
  const experiment = state.taskWidth === 3 ? "brody-three-dimensions" : "brody-majority";
  const [size, width] = state.taskWidth === 3 ? ["Three", 3] : ["Eight", 8];
  const { length, sequences, batch, rate } = trainingSizes[widthOf(state)];
  return {
    command: `normscope lab run ${experiment} --quick -o figures`,
    cpp: cppOf(
      ["nets/majority"],
      `using namespace normscope::nets::majority;
Training<${size}> training({.task = {.classes = ${size}::classes, .length = ${length}, .sequences = ${sequences}},
                          .norm = {.projects = false, .squared_length = ${state.taskEqual ? `${width}.0` : `1.0 / ${width}.0`}},
                          .batch = ${batch},
                          .rate = ${rate}},
                         ${state.taskSeed});
while (training.step() < ${state.taskAt}) training.advance();
fmt::print("{} degrees, accuracy {}\\n", training.attention().angle, training.tested().right);`,
    ),
    python: `import json, subprocess

words = ["normscope", "lab", "run", "${experiment}", "--quick", "--json", "-"]
done = subprocess.run(words, check=True, capture_output=True)
for claim in json.loads(done.stdout)["experiments"][0]["claims"]:
    print(claim["claim"], claim["ours"])
`,
  };
}

/** The majority task, learned side by side with the projection and without. */
export function mountMajority(page: Page<State>): void {
  const { store } = page;
  let arms: Arms | null = null;
  let shown: State = store.get();
  const stepsSeen = () => (arms === null ? 0 : Math.min(...arms.map(({ looks }) => looks.at(-1)?.step ?? 0)));
  const looksNow = (): Look[] => {
    const index = Math.floor(Math.min(shown.taskAt, stepsSeen()) / together);
    return arms === null ? [] : arms.map(({ looks }) => looks[index]!);
  };

  const space = new PlaneFigure({
    id: "majority",
    description: "Keys and the directions of queries of both networks, seen from the side: all-ones is up.",
    caption:
      "Arrows: directions of queries, dots: keys, both networks after as many steps. Lengths of keys and all angles to all-ones are true; of the directions across it, two are drawn.",
    x: [-2.6, 2.6],
    y: [-1.4, 1.75],
    bare: true,
    table: () => ({
      columns: ["network", "class", "vector", "along all-ones", "across", "angle to all-ones, degrees"],
      rows: looksNow().flatMap((look, arm) =>
        (["keys", "queries"] as const).flatMap((kind) =>
          vectorsOf(look[kind], widthOf(shown)).map((vector, i) => {
            const [x, y, up] = upright(vector);
            const across = Math.hypot(x, y);
            const angle = (Math.atan2(across, Math.abs(up)) * 180) / Math.PI;
            return [names[arm] ?? "", letter(i), kind, up, across, angle];
          }),
        ),
      ),
    }),
  });
  const curveTable = () => ({
    columns: ["network", "step", "loss", "accuracy", "angle", "query length", "divergence"],
    rows: (arms ?? []).flatMap(({ looks }, arm) =>
      looks.map(({ step, loss, accuracy, angle, queryLength, divergence }) => [
        names[arm] ?? "",
        ...[step, loss, accuracy, angle, queryLength, divergence],
      ]),
    ),
  });
  const over = (id: string, description: string, yTitle: string | (() => string), y: [number, number]) =>
    new PlaneFigure({
      ...{ id, description, yTitle, y, aspect: 0.62, table: curveTable },
      x: steps,
      xTitle: "step",
    });
  const angle = over(
    "majority-angle",
    "The mean angle of queries to all-ones over the steps of training, for both networks.",
    "queries to all-ones, degrees",
    [0, 90],
  );
  const learned = over(
    "majority-learned",
    "The accuracy or the loss on sequences held out over the steps of training, for both networks.",
    () => `${shown.taskCurve}, held out`,
    [0, 1],
  );
  const attention = new PlaneFigure({
    id: "majority-attention",
    description: "The attention that each class of one sequence gets in both networks, beside its part of the tokens.",
    x: [-0.6, 7.6],
    y: [0, 0.5],
    yTitle: "part of the attention",
    xTitle: "class, by its number of tokens",
    aspect: 0.62,
    categories: (index) => letter(order()[index] ?? -1),
    table: () => ({
      columns: ["class", "tokens", ...names],
      rows: order().map((index) => [
        letter(index),
        arms?.[0].training.example[index] ?? 0,
        ...looksNow().map((look) => look.attention[index] ?? 0),
      ]),
    }),
  });
  const figures = {
    majority: space,
    "majority-angle": angle,
    "majority-learned": learned,
    "majority-attention": attention,
  };
  for (const [slot, plane] of Object.entries(figures)) {
    page.keep(plane);
    page.slot(slot).append(plane.element);
  }

  /** The classes of the example, the most frequent first. */
  const order = (): number[] => {
    const counts = [...(arms?.[0].training.example ?? [])];
    return counts
      .map((_, i) => i)
      .filter((i) => counts[i]! > 0)
      .sort((a, b) => counts[b]! - counts[a]!);
  };

  space.painted(() => {
    looksNow().forEach((look, arm) => {
      const width = widthOf(shown);
      const unit = Math.sqrt(width);
      const center = arm === 0 ? -1.3 : 1.3;
      const turn = (shown.taskTurn * Math.PI) / 180;
      const put = ({ at: [x, y] }: { at: Point }): Point => [center + x, y];
      const circle = (radius: number) =>
        Array.from({ length: 73 }, (_, i) => {
          const round = (2 * Math.PI * i) / 72;
          return put(seen([radius * Math.cos(round), radius * Math.sin(round), 0], 0));
        });
      space.path(circle(1), { stroke: "var(--rule)", "stroke-width": 1.5 });
      space.line([center, -1.15], [center, 1.15], { "stroke-dasharray": "4 3" });
      const title = { "text-anchor": "middle", "font-weight": 600, fill: inks[arm]! };
      space.text([center, 1.25], names[arm] ?? "", title, [0, -20]);
      const long = number(Math.hypot(...look.keys.subarray(0, width)), 2);
      space.text([center, 1.25], `keys of length ${long}`, { "text-anchor": "middle", fill: "var(--muted)" }, [0, -4]);
      space.text([center, 1.15], "all-ones", { fill: "var(--muted)" }, [6, 10]);
      const faint = (near: number) => 0.45 + 0.55 * Math.min(1, Math.max(0, (near + 1) / 2));
      for (const vector of vectorsOf(look.queries, width)) {
        const length = Math.hypot(...vector) || 1;
        const tip = seen(upright(vector.map((value) => value / length)), turn);
        space.arrow([center, 0], put(tip), { stroke: "var(--ink)", "stroke-width": 1.4, opacity: faint(tip.near) });
      }
      const keys = vectorsOf(look.keys, width).map((vector) =>
        seen(upright(vector.map((value) => value / unit)), turn),
      );
      for (const key of keys.sort((a, b) => a.near - b.near))
        space.dot(put(key), 5.5, {
          fill: inks[arm]!,
          stroke: "var(--paper)",
          "stroke-width": 1,
          opacity: faint(key.near),
        });
    });
  });
  const curves = (plane: PlaneFigure, value: (look: Look) => number) => {
    (arms ?? []).forEach(({ looks }, arm) =>
      plane.path(
        looks.map((look): Point => [look.step, value(look)]),
        { stroke: inks[arm]!, "stroke-width": 2.2, ...lines[arm] },
      ),
    );
    const now = looksNow();
    const most = Math.max(...now.map(value));
    now.forEach((look, arm) => {
      const at: Point = [look.step, value(look)];
      plane.dot(at, 4.5, { fill: inks[arm]! });
      // The upper curve's name is above it, the other's below.
      const early = look.step < 0.3 * steps[1];
      const anchor = { "text-anchor": early ? "start" : "end", "font-weight": 600, fill: inks[arm]! };
      plane.text(at, names[arm] ?? "", anchor, [early ? 8 : 4, value(look) === most ? -10 : 32]);
    });
  };
  angle.painted(() => curves(angle, (look) => look.angle));
  learned.painted(() => {
    const ofLoss = shown.taskCurve === "loss";
    learned.ranges(steps, [0, ofLoss ? 4 : 1]);
    curves(learned, (look) => (ofLoss ? look.loss : look.accuracy));
  });
  attention.painted(() => {
    const looks = looksNow();
    const classes = order();
    const example = arms?.[0].training.example ?? new Float64Array();
    const tokens = example.reduce((sum, count) => sum + count, 0);
    const most = Math.max(
      0.1,
      ...classes.flatMap((i) => [example[i]! / tokens, ...looks.map((look) => look.attention[i]!)]),
    );
    attention.ranges([-0.6, classes.length - 0.4], [0, 1.15 * most]);
    classes.forEach((index, place) => {
      looks.forEach((look, arm) => {
        const [left, right] = arm === 0 ? [place - 0.34, place - 0.02] : [place + 0.02, place + 0.34];
        const top = look.attention[index] ?? 0;
        attention.path(
          [
            [left, 0],
            [left, top],
            [right, top],
            [right, 0],
          ],
          {
            ...{ fill: inks[arm]!, stroke: inks[arm]!, "fill-opacity": arm === 0 ? 0.85 : 0.35 },
          },
        );
      });
      const uniform = example[index]! / tokens;
      attention.line([place - 0.44, uniform], [place + 0.44, uniform], { stroke: "var(--ink)", "stroke-width": 2 });
    });
  });

  const tell = () => {
    const [with_, without] = looksNow();
    if (with_ === undefined || without === undefined) return;
    for (const plane of Object.values(figures)) plane.changed();
    const words = (look: Look) =>
      `${look.angle.toFixed(0)}° from all-ones in the mean and ${number(look.queryLength, 2)} long, ${percent(look.accuracy)} of the tokens right`;
    page.slot("majority-words").textContent =
      `After ${with_.step} steps, with LayerNorm queries are ${words(with_)}; without the projection ${words(without)}. ` +
      `Attention is ${number(with_.divergence, 2)} and ${number(without.divergence, 2)} nats from uniform.`;
    const { dataset } = space.element;
    dataset["step"] = String(with_.step);
    dataset["angles"] = `${with_.angle.toFixed(2)} ${without.angle.toFixed(2)}`;
    dataset["accuracies"] = `${with_.accuracy.toFixed(4)} ${without.accuracy.toFixed(4)}`;
  };

  const stop = hold("Stop");

  let key = "";
  let left = false;
  let working = false;
  const keyOf = (state: State) => JSON.stringify([specsOf(state), state.taskSeed]);
  const release = () => {
    for (const { training } of arms ?? []) void training.delete();
    arms = null;
    key = "";
  };
  const begin = async (state: State): Promise<void> => {
    release();
    const wanted = keyOf(state);
    const [a, b] = await Promise.all(
      specsOf(state).map(async (spec): Promise<Arm> => {
        const training = await MajorityTraining.start(page.engine, spec, state.taskSeed);
        return { training, looks: [await training.look()] };
      }),
    );
    arms = [a!, b!];
    key = wanted;
    if (left) release();
  };
  /** Trains what the state asks for, up to its step, and shows it on the way; the newest state counts. */
  const follow = async (): Promise<void> => {
    if (working) return;
    working = true;
    let drawn = 0;
    try {
      while (!left) {
        if (keyOf(shown) !== key) await begin(shown);
        if (arms === null || stepsSeen() >= shown.taskAt) break;
        stop.tell(true);
        const held = stop.held();
        if (held !== null) {
          tell();
          await held;
          continue;
        }
        for (const { training, looks } of arms) looks.push(await training.advance(together));
        if (still.matches || performance.now() - drawn < drawEvery) continue;
        drawn = performance.now();
        tell();
      }
      if (!left) tell();
    } catch (error) {
      page.slot("majority-words").textContent = error instanceof Error ? error.message : String(error);
    } finally {
      working = false;
      stop.tell(false);
    }
  };
  page.onLeave(() => {
    left = true;
    stop.goOn();
    if (!working) release();
  });

  const turn = slider(page, "turn", "taskTurn", {
    min: 0,
    max: 360,
    step: 1,
    show: (value) => `${value}°`,
  });
  page.slot("majority-controls").append(
    controls(
      "The training",
      choice(page, "Vectors of", "taskWidth", [
        [8, "eight numbers"],
        [3, "three numbers"],
      ]),
      toggle(page, "equal length", "taskEqual"),
      slider(page, "step", "taskAt", { ...taskSteps, step: together }),
      stop.button,
      button("Train again", () => store.commit({ taskSeed: store.get().taskSeed + 1 }), { class: "action" }),
      choice(page, "Curve", "taskCurve", [
        ["accuracy", "accuracy"],
        ["loss", "loss"],
      ]),
      turn,
    ),
  );

  let visible = false;
  page.onChange((state) => {
    shown = state;
    if (!visible) return;
    tell();
    void follow();
  });
  const unwatch = whenSeen(space.element, () => {
    visible = true;
    void follow();
  });
  page.onLeave(unwatch);
}

const vectorsOf = (values: Float64Array, width: number): Float64Array[] =>
  Array.from({ length: values.length / width }, (_, i) => values.subarray(i * width, (i + 1) * width));
