import type { NormKind } from "../generated/report";
import type { Select } from "../generated/select";
import type { Engine } from "./client";

export interface NormSpec {
  kind: NormKind;
  width: number;
  groups?: number;
  eps?: number;
  gain?: number[];
  bias?: number[];
}

/** The ellipsoid a norm fills; axes and nullSpace are rows of `width` numbers. */
export interface Image {
  semiAxes: Float64Array;
  axes: Float64Array;
  nullSpace: Float64Array;
  condition: number;
  radius: number;
}

type Step = NonNullable<Select["norm"]>["steps"][number];

export const stepNames = ["project", "scale", "stretch", "shift"] as const satisfies readonly Step[];

/** `points` after each of the four steps. */
export const steps = (engine: Engine, spec: NormSpec, points: Float64Array): Promise<Float64Array[]> =>
  engine.call("geometrySteps", spec, points);

export const image = (engine: Engine, spec: NormSpec): Promise<Image> => engine.call("geometryImage", spec);
