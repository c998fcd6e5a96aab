import type { Train } from "../generated/train";
import type { Engine, Remote } from "./client";

export interface TrainSpec {
  width: number;
  depth: number;
  activation: Train["net"]["activation"];
  norm: Train["net"]["norm"];
  groups: number;
  eps: number;
  optimizer: "adam" | "sgd";
  rate: number;
  schedule: string;
  steps: number;
  batch: number;
  seed: number;
}

/** A task of the core, or points of the reader's own, `width` numbers each. */
export type Data =
  | { task: string; rows: number; seed: number; noise?: number }
  | {
      width: number;
      x: ArrayLike<number>;
      labels: ArrayLike<number>;
      held?: { x: ArrayLike<number>; labels: ArrayLike<number> };
    };

/** A rectangle in cells, the lowest row first. */
export interface Grid {
  left: number;
  right: number;
  bottom: number;
  top: number;
  columns: number;
  rows: number;
}

export interface Samples {
  x: Float64Array;
  labels: Int32Array;
  width: number;
  classes: number;
  /** Rows that equal an earlier one with another label. */
  conflicts: number;
  /** Around samples of two features. */
  grid?: Grid;
}

/** The class of each point, and its probability. */
export interface Answers {
  classes: Int32Array;
  probabilities: Float32Array;
}

/** The points and their images after every layer, `width` numbers each. */
export interface States {
  width: number;
  states: Float32Array[];
}

/** A linear map's weights, a row of `in` an output. */
export interface Weights {
  in: number;
  out: number;
  weight: Float64Array;
}

export interface Curves {
  step: Float64Array;
  loss: Float64Array;
  accuracy: Float64Array;
  transitions: Train["transitions"];
}

/** On the samples; `held` is the accuracy on samples that are not trained on, if there are any. */
export interface Score {
  step: number;
  loss: number;
  accuracy: number;
  held: number | null;
}

export interface Progress {
  steps: number;
  /** Loss of the last record; null before the first. */
  loss: number | null;
  accuracy: number | null;
  /** Steps between two states that are kept. */
  distance: number;
}

export interface Task {
  name: string;
  claim: string;
  rows: number;
  depth: number;
  rate: number;
  schedule: string;
  steps: number;
}

/** A training in the core that keeps earlier nets: every `step` below refers to the last kept step at or before it. */
export class Training {
  private constructor(private readonly remote: Remote) {}

  static async start(engine: Engine, spec: TrainSpec, data: Data): Promise<Training> {
    return new Training(await engine.create("Training", spec, data));
  }

  advance(steps: number): Promise<Progress> {
    return this.remote.call("advance", steps);
  }
  score(step: number): Promise<Score> {
    return this.remote.call("score", step);
  }
  answers(points: Float64Array, step: number): Promise<Answers> {
    return this.remote.call("answers", points, step);
  }
  field(grid: Grid, step: number): Promise<Answers> {
    return this.remote.call("field", grid, step);
  }
  /** States of `points`, or of the samples. */
  states(points: Float64Array | null, step: number): Promise<States> {
    return this.remote.call("states", points, step);
  }
  /** As `states`, with two entries a layer: its linear map, then its activation. */
  steps(points: Float64Array | null, step: number): Promise<States> {
    return this.remote.call("steps", points, step);
  }
  /** The probabilities of all classes for each point. */
  probabilities(points: Float64Array, step: number): Promise<Float32Array> {
    return this.remote.call("probabilities", points, step);
  }
  /** As `states`, without the points themselves. */
  layers(points: Float64Array | null, step: number): Promise<States> {
    return this.remote.call("layers", points, step);
  }
  /** The last linear map: a row of weights an output. */
  head(step: number): Promise<{ weight: Float64Array; bias: Float64Array }> {
    return this.remote.call("head", step);
  }
  /** Weights of every linear map, the last one included. */
  weights(step: number): Promise<Weights[]> {
    return this.remote.call("weights", step);
  }
  curves(most: number): Promise<Curves> {
    return this.remote.call("curves", most);
  }
  delete(): Promise<void> {
    return this.remote.delete();
  }
}

export const samples = (engine: Engine, data: Data, cells: number): Promise<Samples> =>
  engine.call("playgroundSamples", data, cells);

/** Data of the chart of loss and accuracy, by the names of its data sets. */
export interface CurveData {
  records: { step: number; loss: number; accuracy: number }[];
  transitions: Train["transitions"];
  now: { step: number }[];
}

/** Loss and accuracy as a chart over `steps` steps. */
export async function curvesFigure(engine: Engine, steps: number, data: CurveData): Promise<Record<string, unknown>> {
  const spec = JSON.parse(await engine.call<string>("playgroundCurvesFigure", steps)) as Record<string, unknown>;
  return { ...spec, datasets: data };
}

export const tasks = (engine: Engine): Promise<Task[]> => engine.call("playgroundTasks");

/** The middles of a grid's cells. */
export const centers = (engine: Engine, grid: Grid): Promise<Float64Array> => engine.call("playgroundCenters", grid);

/** Points of the unit sphere for places (angle, height) of its map. */
export const onSphere = (engine: Engine, places: Float64Array): Promise<Float64Array> =>
  engine.call("playgroundOnSphere", places);

/** Places on the map for points of the sphere. */
export const onMap = (engine: Engine, points: Float64Array): Promise<Float64Array> =>
  engine.call("playgroundOnMap", points);

/** Rows of a CSV file, the last column the class, as points with at most four digits; a head is passed over. */
export function readPoints(text: string): { width: number; x: number[]; labels: number[]; names: string[] } {
  const rows = text
    .split(/\r?\n/)
    .filter((line) => line.trim() !== "")
    .map((line) => line.split(/[,;\t]/).map((cell) => cell.trim()));
  const isNumber = (cell: string) => cell !== "" && Number.isFinite(Number(cell));
  if (rows.length > 0 && !rows[0]!.slice(0, -1).every(isNumber)) rows.shift();
  const columns = rows[0]?.length ?? 0;
  if (columns < 3 || columns > 4)
    throw new Error(`the file has ${columns} columns, expected two or three numbers and a class`);
  const names: string[] = [];
  const x: number[] = [];
  const labels: number[] = [];
  rows.forEach((row, i) => {
    const numbers = row.slice(0, -1);
    if (row.length !== columns || !numbers.every(isNumber))
      throw new Error(`row ${i + 1} is "${row.join(",").slice(0, 60)}", expected ${columns - 1} numbers and a class`);
    x.push(...numbers.map((cell) => Number(Number(cell).toPrecision(4))));
    const name = row[columns - 1] ?? "";
    if (!names.includes(name)) names.push(name);
    labels.push(names.indexOf(name));
  });
  return { width: columns - 1, x, labels, names };
}
