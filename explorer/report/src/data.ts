import type { Chart, Maybe } from "../../shared/chart";

/** The report as `normscope report` writes it: schema "normscope.report/1". */
export interface Report {
  schema: string;
  version: string;
  model: Model;
  norms: Norm[];
  heads: Head[];
  vocabulary: Vocabulary | null;
  findings: Finding[];
}

/** null where a number is not finite or not known. */

export interface Model {
  name: string;
  path: string;
  format: string;
  files: { name: string; bytes: Maybe }[];
  architecture: string;
  title: string;
  evidence: string;
  layers: Maybe;
  width: Maybe;
  heads_per_layer: Maybe;
  key_value_heads: Maybe;
  parameters: Maybe;
  tensors: Maybe;
  metadata: Record<string, unknown>;
  missing: string[];
  notes: string[];
}

/** One trained vector of a norm, its gain or its bias. */
export interface Parameter {
  tensor: string;
  min: Maybe;
  max: Maybe;
  mean: Maybe;
  std: Maybe;
  median_abs: Maybe;
  negative: number;
  zero: number;
  not_finite: number;
}

export interface Axis {
  rank: number;
  length: Maybe;
  ratio_to_median: Maybe;
  coordinate: number;
  weight: Maybe;
}

export interface Image {
  semi_axes: Maybe;
  longest: Maybe;
  median: Maybe;
  shortest: Maybe;
  condition: Maybe;
  effective_dimension: Maybe;
  energy_top_1: Maybe;
  energy_top_8: Maybe;
  spectrum: { rank: number; length: Maybe }[];
  top_axes: Axis[];
}

/** A weight matrix that reads from a norm or writes towards it. */
export interface Connection {
  role: string;
  tensor: string;
  layout: string;
  first_out: Maybe;
  out: Maybe;
  in: Maybe;
}

export interface Norm {
  index: number;
  name: string;
  role: string;
  layer: Maybe;
  stack: string;
  kind: string;
  width: Maybe;
  groups: Maybe;
  eps: Maybe;
  eps_source: string;
  placement: string;
  applications: Maybe;
  gain_offset: Maybe;
  gain: Parameter | null;
  bias: Parameter | null;
  null_space: {
    dim: Maybe;
    cosine_to_ones: Maybe;
    top: { coordinate: number; weight: Maybe }[];
  } | null;
  image: Image | null;
  outlier_count: number;
  outliers: { coordinate: number; gain: Maybe; ratio_to_median: Maybe }[];
  next: { index: number; name: string; similarity: Maybe; top_axis_cosine: Maybe } | null;
  connections_known: boolean;
  readers: Connection[];
  writers: Connection[];
  reproduce: string;
}

export interface Head {
  layer: Maybe;
  head: number;
  key_value_head: Maybe;
  head_dim: Maybe;
  norm: string;
  query: string | null;
  key: string | null;
  value: string | null;
  rotary: boolean;
  /** The passes that this entry is of where shared weights serve several. */
  pass: "first" | "later" | null;
  soft_cap?: Maybe;
  /** null where only bounds are known, and where nothing is. */
  sharp_spread?: Maybe;
  uniform_bounds?: [Maybe, Maybe];
  sharp_bounds?: [Maybe, Maybe];
  without_projection?: { uniform_bounds: [Maybe, Maybe]; sharp_bounds: [Maybe, Maybe] };
  /** Of rotary heads: what the bounds above are over, and what holds elsewhere. */
  distances?: {
    within: Maybe;
    sharp_at_most_anywhere: Maybe;
    at_distance_zero: { uniform_bounds: [Maybe, Maybe]; sharp_bounds: [Maybe, Maybe] };
  };
  refused?: string;
}

export interface Token {
  token: number;
  name: string | null;
  lead_at_most: Maybe;
  probability: [Maybe, Maybe];
}

export interface VocabularyReach {
  reachable: number;
  unreachable: number;
  undecided: number;
  unreachable_without_ball: number;
  unreachable_tokens: Token[];
  nearest: Token[];
  least_probable: Token[];
  left_out: { tokens: number; leads: number; probabilities: number };
}

export interface Vocabulary {
  size: Maybe;
  tied: boolean;
  unembedding: string | null;
  final_norm: string;
  reach?: VocabularyReach;
  refused?: string;
}

export interface Finding {
  kind: string;
  norm: string | null;
  norm_index: Maybe;
  text: string;
  severity: Maybe;
  reproduce: string;
}

const read = (id: string): unknown => JSON.parse(document.getElementById(id)?.textContent ?? "null");

/** The report and charts of this page, or null where none was filled in. */
export function pageData(): { report: Report; charts: Chart[] } | null {
  const report = read("report-data") as Report | null;
  if (report?.schema !== "normscope.report/1") return null;
  return { report, charts: (read("chart-data") as Chart[] | null) ?? [] };
}
