import type { SignatureVerify } from "../generated/signature-verify";
import type { Engine } from "./client";
import type { NormSpec } from "./geometry";

/** A norm and an unembedding of three tokens, a row of weights each. */
export interface SmallModel {
  norm: NormSpec;
  unembedding: number[];
  bias?: number[];
}

export type Precision = "float32" | "float16" | "bfloat16";

/** Whether a model can have given an output; `units` is the distance of |u| from 1 in units of rounding, signed. */
export interface RowVerdict {
  verdict: SignatureVerify["verdict"];
  reason: string;
  proved: boolean;
  length: number;
  units: number;
}

/** Logits of the model for `count` random inputs, a row of three each. */
export const outputs = (
  engine: Engine,
  model: SmallModel,
  precision: Precision,
  count: number,
  seed: number,
): Promise<Float64Array> => engine.call("signatureOutputs", model, precision, count, seed);

/** Coordinates of rows of logits in the plane that is left when their mean is taken away. */
export const places = (engine: Engine, logits: Float64Array): Promise<Float64Array> =>
  engine.call("signaturePlaces", logits);

/** `count` + 1 points once around the model's ellipse in that plane. */
export const ellipse = (engine: Engine, model: SmallModel, count: number): Promise<Float64Array> =>
  engine.call("signatureEllipse", model, count);

export const verify = (
  engine: Engine,
  model: SmallModel,
  logits: Float64Array,
  precision: Precision,
): Promise<RowVerdict[]> => engine.call("signatureVerify", model, logits, precision);
