import type { Data, Grid, TrainSpec } from "../../engine/playground";
import { factsOf, isNormalizingKind } from "../../shared/format";
import type { Doors } from "../chapter";
import { cppOf, pythonOf } from "../doors";
import { between as within, listOf, oneOf, seed, whole } from "../link";
import type { Rules } from "../link";

export const defaults = {
  data: "spiral",
  rows: 500,
  seed: 3,
  /** Standard deviation of the noise that is added to every feature of a task's samples. */
  noise: 0,
  kind: "spherical",
  groups: 1,
  width: 3,
  depth: 2,
  rate: 0.01,
  optimizer: "adam",
  schedule: "constant",
  steps: 8000,
  /** Steps that have been trained, and the one on show; −1 for the last. */
  trained: 3000,
  at: -1,
  /** From 0, the input, to a unit behind the last layer, in which the picture turns. */
  layer: 2,
  pace: 10,
  /** The reader's own: `features` numbers and a class each. */
  features: 2,
  points: [] as number[],
};
export type State = typeof defaults;

export const taskNames: [value: string, label: string][] = [
  ["spiral", "Two spiral arms"],
  ["octants", "Sphere in eight parts"],
  ["xor", "XOR"],
  ["rings", "Ring in a ring"],
  ["own", "Your own points, from these"],
];

/** What a task asks of the net, and where its samples end if the net learns it; for the words of the chapter. */
export const taskWords: Record<string, { asks: string; ends: string }> = {
  spiral: {
    asks: "two spiral arms apart",
    ends:
      "The plane comes to lie on the sphere and folds over itself until one class is a cap and the other a band around it. " +
      "In the end one plane cuts them apart",
  },
  octants: {
    asks: "the eighths of a sphere apart, of which neighbours have opposite classes",
    ends: "The sphere folds onto itself, layer by layer, until one plane cuts the classes apart",
  },
  xor: {
    asks: "the corners of a square apart, of which opposite ones have one class",
    ends: "The plane bends over the sphere until one plane in space cuts the classes apart",
  },
  rings: {
    asks: "a ring apart from the ring around it",
    ends: "The inner ring ends as a cap of the sphere and the outer one around it, so that one plane cuts them apart",
  },
  own: { asks: "your points apart", ends: "If the net learns them, one plane cuts the classes apart in the end" },
};

/** Activations that may stand between two layers. */
export const between: Record<TrainSpec["norm"] | Exclude<TrainSpec["activation"], "norm" | "gelu">, string> = {
  spherical: "u(x) = x/|x|",
  layer: "LayerNorm",
  rms: "RMSNorm",
  relu: "ReLU",
  none: "nothing",
};

/** The reader's points that still fit into a link. */
export const mostOwn = 1000;
export const widths = [2, 3, 4, 6, 8, 12, 16];
export const depths = [1, 2, 3, 4, 5, 6];
export const groupCounts = [1, 2, 3, 4, 6, 8];
export const noises = { min: 0, max: 0.5 };
export const rates = { min: 1e-4, max: 1 };
export const lengths = [1000, 2000, 4000, 8000, 10000, 20000];
export const paces: [number, string][] = [
  [1, "1 step a frame"],
  [10, "10 steps a frame"],
  [50, "50 steps a frame"],
  [0, "as fast as it can"],
];
export const optimizers: [string, string][] = [
  ["adam", "Adam"],
  ["sgd", "SGD"],
];
export const schedules: [string, string][] = [
  ["constant", "constant"],
  ["linear", "falls on a line"],
  ["cosine", "falls as a cosine"],
  ["step", "halves eight times"],
];
const values = (options: [string | number, string][]) => oneOf(options.map(([value]) => value));
const longest = Math.max(...lengths);

export const rules: Rules<State> = {
  data: values(taskNames),
  rows: whole({ min: 8, max: 5000 }),
  seed,
  noise: within(noises),
  kind: oneOf(Object.keys(between)),
  groups: {
    allows: (groups, { width }) => groupCounts.includes(groups as number) && width % (groups as number) === 0,
    expected: `one of ${groupCounts.join(", ")} that divides the width`,
  },
  width: oneOf(widths),
  depth: oneOf(depths),
  rate: within(rates),
  optimizer: values(optimizers),
  schedule: values(schedules),
  steps: whole({ min: 1, max: longest }),
  trained: whole({ min: 0, max: longest }),
  at: whole({ min: -1, max: longest }),
  layer: within({ min: 0, max: Math.max(...depths) + 1 }),
  pace: values(paces),
  features: oneOf([2, 3]),
  points: listOf<State>(
    within({ min: -1e6, max: 1e6 }),
    (count, { features }) => count % (features + 1) === 0 && count <= mostOwn * (features + 1),
    `up to ${mostOwn} points of 2 or 3 numbers and a class`,
  ),
};

export const specOf = (state: State): TrainSpec => ({
  width: state.width,
  depth: state.depth,
  activation: isNormalizingKind(state.kind) ? "norm" : (state.kind as TrainSpec["activation"]),
  norm: isNormalizingKind(state.kind) ? state.kind : "spherical",
  groups: isNormalizingKind(state.kind) ? state.groups : 1,
  eps: 1e-5,
  optimizer: state.optimizer as TrainSpec["optimizer"],
  rate: state.rate,
  schedule: state.schedule,
  steps: state.steps,
  batch: 0,
  seed: state.seed,
});

/** The reader's points as rows and classes. */
export function ownPoints({ features, points }: State): { width: number; x: number[]; labels: number[] } {
  const x: number[] = [];
  const labels: number[] = [];
  for (let i = 0; i + features < points.length; i += features + 1) {
    x.push(...points.slice(i, i + features));
    labels.push(points[i + features] ?? 0);
  }
  return { width: features, x, labels };
}

export const packed = (width: number, x: ArrayLike<number>, labels: ArrayLike<number>): number[] =>
  Array.from({ length: labels.length }, (_, i) => [
    ...Array.from({ length: width }, (__, j) => x[i * width + j] ?? 0),
    labels[i] ?? 0,
  ]).flat();

export const dataOf = (state: State): Data =>
  state.data === "own"
    ? ownPoints(state)
    : { task: state.data, rows: state.rows, seed: state.seed, noise: state.noise };

/** The radius of the sphere on which the norms put their outputs; null where there is none. */
export const radiusOf = ({ kind, width, groups }: Pick<State, "kind" | "width" | "groups">): number | null =>
  groups !== 1
    ? null
    : { root_mean_square: Math.sqrt(width), length: 1, nothing: null }[factsOf(kind)?.divisor ?? "nothing"];

/** The inputs of a training; if they change, the training restarts. */
export const keyOf = (state: State): string => JSON.stringify([specOf(state), dataOf(state)]);

/** Points added by the reader are limited to this rectangle. */
export const ownGrid = (cells: number): Grid => ({
  left: -1.4,
  right: 1.4,
  bottom: -1.4,
  top: 1.4,
  columns: cells,
  rows: cells,
});

const flags = (state: State): string[] => {
  const spec = specOf(state);
  // A decreasing rate depends on the total number of steps.
  const steps = state.schedule === "constant" ? Math.max(1, state.trained) : state.steps;
  return [
    ...(state.data === "own" ? [] : ["--rows", String(state.rows)]),
    ...(state.data === "own" || state.noise === 0 ? [] : ["--noise", String(state.noise)]),
    ...["--seed", String(state.seed), "--seeds", "1", "--width", String(spec.width), "--depth", String(spec.depth)],
    ...(spec.activation === "norm"
      ? ["--norm", spec.norm, "--groups", String(spec.groups)]
      : ["--activation", spec.activation]),
    ...[
      "--optimizer",
      spec.optimizer,
      "--lr",
      String(spec.rate),
      "--schedule",
      spec.schedule,
      "--steps",
      String(steps),
    ],
  ];
};

const makers: Record<string, string> = { spiral: "spiral", octants: "octants", xor: "xor_corners", rings: "rings" };

export function doors(state: State): Doors {
  const own = state.data === "own";
  const { width, x, labels } = ownPoints(state);
  // Arrays may be written out: rows apart by semicolons.
  const rows = labels.map((_, i) => x.slice(width * i, width * (i + 1)).join(",")).join(";");
  const words = ["nets", "train", ...(own ? [rows, labels.join(",")] : [state.data]), ...flags(state)];
  const spec = specOf(state);
  const steps = words[words.length - 1] ?? "";
  const data = own
    ? `nets::dataset("points", ${width}, {${x.join(", ")}}, {${labels.join(", ")}})`
    : `nets::with_noise(nets::${makers[state.data] ?? "spiral"}(${state.rows}, ${state.seed}), ${state.noise}, ${state.seed})`;
  return {
    command: `normscope ${words.map((word) => (word.includes(";") ? `'${word}'` : word)).join(" ")}`,
    cpp: cppOf(
      ["nets/tasks", "nets/train"],
      `namespace nets = normscope::nets;
nets::TrainSpec spec;
spec.width = ${spec.width};
spec.depth = ${spec.depth};
spec.activation = nets::Activation::${spec.activation};
spec.norm = normscope::NormKind::${spec.norm};
spec.groups = ${spec.groups};
spec.optimizer = nets::Optimizer::${spec.optimizer};
spec.rate = ${spec.rate};
spec.schedule = nets::Schedule::${spec.schedule};
spec.steps = ${steps};
spec.seed = ${spec.seed};
nets::Trainer trainer(spec, ${data});
while (!trainer.done()) trainer.step();
const nets::Score score = trainer.score();
fmt::print("loss {}, accuracy {}\\n", score.loss, score.accuracy);`,
    ),
    python: pythonOf(words),
  };
}
