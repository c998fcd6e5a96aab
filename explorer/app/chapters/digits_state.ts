import type { TrainSpec } from "../../engine/playground";
import { counts } from "../../engine/digits";
import { isNormalizingKind } from "../../shared/format";
import type { Doors } from "../chapter";
import { cppOf, pythonOf } from "../doors";
import { between as within, oneOf, seed, whole } from "../link";
import type { Rules } from "../link";
import { between } from "./playground_state";

export const defaults = {
  kind: "spherical",
  width: 3,
  depth: 3,
  seed: 1,
  /** Steps that are trained. */
  steps: 2000,
  layer: 3,
};
export type State = typeof defaults;

export const widths = [3, 6, 16, 32];
export const depths = [1, 2, 3, 4];
export const lengths = [500, 1000, 2000, 4000];

export const rules: Rules<State> = {
  kind: oneOf(Object.keys(between)),
  width: oneOf(widths),
  depth: oneOf(depths),
  seed,
  steps: whole({ min: 1, max: Math.max(...lengths) }),
  layer: within({ min: 1, max: Math.max(...depths) }),
};

/** Images in a step. */
const batch = 60;

export const specOf = (state: State): TrainSpec => ({
  width: state.width,
  depth: state.depth,
  activation: isNormalizingKind(state.kind) ? "norm" : (state.kind as TrainSpec["activation"]),
  norm: isNormalizingKind(state.kind) ? state.kind : "spherical",
  groups: 1,
  eps: 1e-5,
  optimizer: "adam",
  rate: 0.01,
  schedule: "cosine",
  steps: state.steps,
  batch,
  seed: state.seed,
});

/** What is trained; if it changes, the training begins anew. */
export const keyOf = (state: State): string => JSON.stringify(specOf(state));

export function doors(state: State): Doors {
  const spec = specOf(state);
  const words = [
    ...["nets", "train", "mnist:mnist", "--rows", String(counts.learned), "--seed", String(state.seed), "--seeds", "1"],
    ...["--width", String(spec.width), "--depth", String(spec.depth), "--optimizer", "adam", "--lr", String(spec.rate)],
    ...["--schedule", spec.schedule, "--steps", String(spec.steps), "--batch", String(batch)],
    ...["--groups", "1", ...(spec.activation === "norm" ? ["--norm", spec.norm] : ["--activation", spec.activation])],
  ];
  return {
    // The folder mnist has the four files of MNIST; the command takes all of their pixels.
    command: `normscope ${words.join(" ")}`,
    cpp: cppOf(
      ["nets/tasks", "nets/train"],
      `namespace nets = normscope::nets;
nets::TrainSpec spec;
spec.width = ${spec.width};
spec.depth = ${spec.depth};
spec.activation = nets::Activation::${spec.activation};
spec.norm = normscope::NormKind::${spec.norm};
spec.schedule = nets::Schedule::${spec.schedule};
spec.steps = ${spec.steps};
spec.batch = ${batch};
spec.seed = ${spec.seed};
nets::Trainer trainer(spec, nets::mnist("mnist", nets::Part::train, ${counts.learned}));
while (!trainer.done()) trainer.step();
const nets::Score score = trainer.score(nets::mnist("mnist", nets::Part::test));
fmt::print("accuracy on the test images {}\\n", score.accuracy);`,
    ),
    python: pythonOf(words),
  };
}
