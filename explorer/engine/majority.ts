import type { Engine, Remote } from "./client";

/** A training of the majority task: vectors of `width` numbers, projected or not, then scaled to a length. */
export interface MajoritySpec {
  width: 3 | 8;
  project: boolean;
  squaredLength: number;
}

/** The paper's sequences, fewer of them and with three times its rate, so that a page can train along. */
export const trainingSizes = {
  3: { length: 30, sequences: 2000, batch: 500, rate: 3e-3 },
  8: { length: 50, sequences: 5000, batch: 500, rate: 3e-3 },
};

/** A network after some steps. */
export interface Look {
  step: number;
  /** Of sequences held out, over tokens. */
  loss: number;
  accuracy: number;
  /** Degrees between queries and all-ones, and the queries' length, in the mean over training tokens. */
  angle: number;
  queryLength: number;
  /** Of attention over positions from the uniform one, nats. */
  divergence: number;
  /** classes × width */
  keys: Float64Array;
  queries: Float64Array;
  /** The fraction of the example's attention that each class gets. */
  attention: Float64Array;
}

export class MajorityTraining {
  private constructor(
    private readonly remote: Remote,
    /** The number of tokens of each class in the example. */
    readonly example: Float64Array,
  ) {}

  static async start(engine: Engine, spec: MajoritySpec, seed: number): Promise<MajorityTraining> {
    const remote = await engine.create("MajorityTraining", { ...trainingSizes[spec.width], ...spec }, seed);
    return new MajorityTraining(remote, await remote.call<Float64Array>("example"));
  }

  look(): Promise<Look> {
    return this.remote.call("look");
  }
  /** Trains on by so many steps. */
  advance(steps: number): Promise<Look> {
    return this.remote.call("advance", steps);
  }
  delete(): Promise<void> {
    return this.remote.delete();
  }
}
