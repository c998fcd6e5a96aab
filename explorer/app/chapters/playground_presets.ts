import type { Preset } from "../chapter";
import type { State } from "./playground_state";

export const presets: Preset<State>[] = [
  {
    name: "A jump",
    claim:
      "Play from the start: after a long plateau the accuracy jumps within some hundred steps. Those jumps are marked by dashed lines.",
    state: { trained: 0, pace: 10 },
  },
  {
    name: "Without the norm",
    claim:
      "Two linear maps in a row are one linear map: the boundary is a straight line, and accuracy stays near 59 %.",
    state: { kind: "none", seed: 1 },
  },
  {
    name: "A sphere in eight parts",
    claim:
      "Neighbouring octants have opposite classes. Four norms of width 3 fold the sphere until one plane separates them.",
    state: {
      data: "octants",
      rows: 1000,
      seed: 1,
      depth: 4,
      rate: 0.03,
      schedule: "linear",
      steps: 10000,
      trained: 10000,
      layer: 4,
    },
  },
  {
    name: "XOR with one norm",
    claim:
      "One layer is enough: a norm bends the plane so that a straight cut separates classes that no line in the plane does.",
    state: { data: "xor", rows: 400, seed: 1, depth: 1, steps: 2000, trained: 2000, layer: 1 },
  },
  {
    name: "A ring in a ring",
    claim: "The inner ring ends as a cap of the sphere, the outer as a ring around it.",
    state: { data: "rings", rows: 400, seed: 1, steps: 2000, trained: 2000 },
  },
  {
    name: "LayerNorm of three",
    claim:
      "Taking the mean away leaves a circle of the sphere: from the first layer on all points lie on one, and a circle folds too little: accuracy stays near 77 %.",
    state: { kind: "layer", seed: 1 },
  },
  {
    name: "ReLU, for comparison",
    claim: "The usual nonlinearity, at the same width and depth: straight pieces instead of arcs.",
    state: { kind: "relu", seed: 1 },
  },
];
