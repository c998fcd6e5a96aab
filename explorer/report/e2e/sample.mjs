// Makes sample reports: `node e2e/sample.mjs PAGE.html DIR` writes DIR/sample-*.html, from a GPT-2-like
// model to the extremes a file may hold.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { charts } from "./sample_charts.mjs";

/** Repeatable numbers in [0, 1). */
function generator(seed) {
  return () => {
    seed = (seed * 1664525 + 1013904223) % 4294967296;
    return seed / 4294967296;
  };
}

const parameter = (tensor, random, top, bottom) => ({
  tensor,
  min: bottom,
  max: top,
  mean: 0.2 + 0.1 * random(),
  std: 0.05 + 0.1 * random(),
  median_abs: 0.2 + 0.05 * random(),
  negative: Math.floor(4 * random()),
  zero: 0,
  not_finite: 0,
});

function gpt2Norm(index, layers, width, random) {
  const last = index === 2 * layers;
  const layer = last ? null : Math.floor(index / 2);
  const name = last ? "ln_f" : `h.${layer}.ln_${(index % 2) + 1}`;
  const role = last ? "final" : index % 2 === 0 ? "attention input" : "MLP input";
  const depth = index / (2 * layers);
  const top = last ? 17.4 : 0.6 + 1.2 * random() + (index % 2 === 0 ? 1.8 * depth : 0);
  const median = 0.18 + 0.3 * depth;
  const shortest = 0.02 + 0.05 * random();
  const steps = 130;
  const spectrum = Array.from({ length: steps }, (_, i) => {
    const at = i / (steps - 1);
    const rank = Math.max(i + 1, Math.round((width - 1) ** at));
    return {
      rank,
      length: 27.7 * (median * (1.6 - at) ** 2 + (top - median) * Math.exp(-i / 3) + shortest * (1 - at)),
    };
  }).filter((point, i, all) => i === 0 || point.rank > all[i - 1].rank);
  const lengths = [spectrum[0].length, 27.7 * median, spectrum.at(-1).length];
  const coordinate = (i) => [138, 378, 447, 64, 393, 266, 481, 87, 496, 719, 36, 430][i % 12];
  const tensor = (what) => (last ? `ln_f.${what}` : `${name}.${what}`);
  const connection = (role, suffix, out, first) => ({
    role,
    tensor: `h.${layer}.${suffix}`,
    layout: "in_out",
    first_out: first,
    out,
    in: width,
  });
  const readers = last
    ? []
    : index % 2 === 0
      ? ["query", "key", "value"].map((role, i) => connection(role, "attn.c_attn.weight", width, i * width))
      : [connection("MLP up", "mlp.c_fc.weight", 4 * width, 0)];
  return {
    index,
    name,
    role,
    layer,
    stack: "",
    kind: "layer",
    width,
    groups: 1,
    eps: 1e-5,
    eps_source: "config",
    placement: last ? "post" : "pre",
    order_known: true,
    applications: 1,
    gain_offset: 0,
    not_measured: null,
    gain: parameter(tensor("weight"), random, top, index === 3 ? -0.000312 : shortest),
    bias: parameter(tensor("bias"), random, 0.4 + random(), -0.8 - random()),
    null_space: {
      dim: 1,
      cosine_to_ones: 0.995 - 0.6 * random() * (1 - depth),
      top: Array.from({ length: 8 }, (_, i) => ({
        coordinate: coordinate(i + index),
        weight: 0.41 / (i + 1),
      })),
    },
    image: {
      semi_axes: width - 1,
      longest: lengths[0],
      median: lengths[1],
      shortest: lengths[2],
      condition: lengths[0] / lengths[2],
      effective_dimension: width * (0.35 + 0.6 * random() * depth),
      energy_top_1: last ? 0.52 : 0.02 + 0.05 * random(),
      energy_top_8: last ? 0.61 : 0.08 + 0.1 * random(),
      spectrum,
      top_axes: Array.from({ length: 8 }, (_, i) => ({
        rank: i + 1,
        length: lengths[0] / (1 + i / 2),
        ratio_to_median: lengths[0] / lengths[1] / (1 + i / 2),
        coordinate: coordinate(i),
        weight: 0.99 - i / 40,
      })),
    },
    outlier_count: last ? 14 : 3,
    outliers: Array.from({ length: last ? 14 : 3 }, (_, i) => ({
      coordinate: coordinate(i),
      gain: top / (i + 1),
      ratio_to_median: top / median / (i + 1),
    })),
    next: last
      ? null
      : {
          index: index + 1,
          name: index === 2 * layers - 1 ? "ln_f" : `h.${Math.floor((index + 1) / 2)}.ln_${((index + 1) % 2) + 1}`,
          similarity: 0.6 + 0.39 * random(),
          top_axis_cosine: random(),
        },
    connections_known: true,
    readers,
    writers: [],
    switched_off_count: 1,
    switched_off: [{ coordinate: coordinate(2), gain: 1e-4 }],
    sign_changes: index % 3,
    reader_weights: readers.map((_, reader) => ({
      reader,
      removed: 0.02 * random(),
      removed_by_chance: 1 / width,
      rows_along_longest_axis: reader,
      features: [{ coordinate: coordinate(reader), share: 0.01 + 0.1 * random() }],
    })),
    reproduce: `normscope geometry --gain model.safetensors:${tensor("weight")} --bias model.safetensors:${tensor("bias")} --eps 1e-05`,
  };
}

function finding(kind, norm, text, numbers, severity) {
  return {
    kind,
    norm: norm.name,
    norm_index: norm.index,
    text,
    numbers,
    severity,
    reproduce: norm.reproduce,
    why: "Maps that read the norm see this direction larger than the others.",
  };
}

/** What is known of a head: exact, bounds only, or nothing. */
function spreads(index, heads, random) {
  const unknown = { uniform_spread: null, sharp_spread: null };
  if (index % 41 === 7) return { ...unknown, refused: "its weights are not finite" };
  if (index % 41 === 8) {
    return {
      ...unknown,
      refused:
        "model.safetensors: tensor h.11.attn.c_attn.weight is 768 x 2304 as I8, expected floating-point numbers or the " +
        "scales that turn it into these; not modelled: position_embedding_type: relative_key_query",
    };
  }
  const uniform = index % 9 === 4 ? 3 * random() : 1e-14;
  const sharp = 10 ** (0.5 + 3 * random()) * (1 + index / heads);
  const exact = index % 29 !== 3;
  const bounds = (factor) => ({
    uniform_bounds: exact ? [factor * uniform, factor * uniform * (1 + 1e-9)] : [0, factor * sharp],
    sharp_bounds: exact ? [factor * sharp, factor * sharp * (1 + 1e-9)] : [0, factor * sharp],
  });
  return {
    uniform_spread: exact ? uniform : null,
    sharp_spread: exact ? sharp : null,
    ...bounds(1),
    without_projection: bounds(1.2),
    uniform_without_scaling: true,
  };
}

const end = (row, bound) => ({ row, bound, attained: 0.999 * bound });

/** Ranges behind these norms: of a quarter of the readers units that keep a sign, of a few nothing. */
function rangesOf(norms, random) {
  return {
    norms: norms.map((norm, i) => {
      const largest = 20 + 200 * random();
      const size = 30 + 500 * random();
      return {
        name: norm.name,
        output: {
          largest,
          feature: 138,
          median: largest / (1 + 6 * random()),
          typical: largest / 27,
          median_typical: largest / 60,
          int8: { scale: largest / 127, typical_steps: 127 / 60 },
          may_overflow: [],
        },
        readers: norm.readers.map(({ role, tensor, out }, k) =>
          i % 9 === 4
            ? { role, weight: tensor, rows: out, refused: "left out at the time limit" }
            : {
                role,
                weight: tensor,
                rows: out,
                lowest: end(k, -size),
                highest: end(k + 1, 0.9 * size),
                typical: size / 25,
                worst_over_typical: 25,
                int8: { scale: size / 127, typical_steps: 127 / 25 },
                never_positive: { count: i % 4 === 3 ? 3 : 0, rows: i % 4 === 3 ? [1, 5, 9] : [] },
                never_negative: { count: 0, rows: [] },
                may_overflow: size > 448 ? ["float8_e4m3"] : [],
              },
        ),
      };
    }),
    logits: null,
    logits_refused: "no map to a vocabulary was found",
  };
}

const nearTokens = [11, 7, 5].map((token, i) => ({
  token,
  name: `token${token}`,
  lead_at_most: 1 + i,
  probability: [0, 0.5 + i / 10],
}));

function gpt2(layers = 12, width = 768, heads = 12) {
  const random = generator(7);
  const norms = Array.from({ length: 2 * layers + 1 }, (_, i) => gpt2Norm(i, layers, width, random));
  const last = norms.at(-1);
  const findings = [
    finding(
      "stretched_axis",
      last,
      `One axis of ln_f is ${(last.image.longest / last.image.median).toFixed(1)} times the median axis; it follows coordinate 138 almost exactly.`,
      { ratio: last.image.longest / last.image.median, coordinate: 138 },
      0.94,
    ),
    finding(
      "energy",
      last,
      "Half of all that ln_f lets through lies in a single direction.",
      { energy_top_1: 0.52 },
      0.81,
    ),
    finding(
      "negative_gain",
      norms[3],
      "The gain of h.1.ln_2 changes sign: one of its entries is slightly negative, so the image folds over itself nowhere but is mirrored there.",
      { smallest: -0.000312, negative: 1 },
      0.47,
    ),
    ...norms
      .filter((norm) => norm.null_space.cosine_to_ones < 0.75)
      .map((norm) =>
        finding(
          "tilted_null_direction",
          norm,
          `The direction ${norm.name} cannot see is far from the all-ones vector: their cosine is ${norm.null_space.cosine_to_ones.toFixed(2)}.`,
          { cosine: norm.null_space.cosine_to_ones },
          0.9 * (1 - norm.null_space.cosine_to_ones),
        ),
      ),
  ];
  return {
    schema: "normscope.report/1",
    version: "0.1.0",
    model: {
      name: "gpt2_small_without_mlp",
      path: "checkpoints/gpt2_small_without_mlp",
      format: "safetensors",
      files: [
        { name: "config.json", bytes: 665 },
        { name: "model.safetensors", bytes: 61_412_352 },
      ],
      architecture: "gpt2",
      title: "GPT-2",
      evidence: "config.json: model_type is gpt2",
      layers,
      width,
      heads_per_layer: heads,
      key_value_heads: heads,
      parameters: 30_687_744,
      tensors: 100,
      metadata: { format: "pt", license: "modified MIT" },
      other_norms: [],
      missing: ["MLP weights of all 12 layers", "token embedding, and with it the unembedding"],
      notes: ["Attention weights are stored as F16; the norms as F32."],
    },
    norms,
    heads: Array.from({ length: layers * heads }, (_, i) => ({
      stack: "",
      layer: Math.floor(i / heads),
      head: i % heads,
      key_value_head: i % heads,
      head_dim: width / heads,
      norm: `h.${Math.floor(i / heads)}.ln_1`,
      query: `h.${Math.floor(i / heads)}.attn.c_attn.weight`,
      key: `h.${Math.floor(i / heads)}.attn.c_attn.weight`,
      value: `h.${Math.floor(i / heads)}.attn.c_attn.weight`,
      rotary: false,
      pass: null,
      ...spreads(i, layers * heads, random),
    })),
    ranges: rangesOf(norms, random),
    vocabulary: {
      size: 50257,
      tied: true,
      unembedding: "wte.weight",
      final_norm: "ln_f",
      reach: {
        reachable: 50257,
        unreachable: 0,
        undecided: 0,
        unreachable_without_ball: 0,
        unreachable_tokens: [],
        tie_groups: 0,
        ties: [],
        // As where the budget leaves the probabilities out.
        nearest: nearTokens,
        least_probable: nearTokens,
        left_out: { tokens: 0, leads: 0, probabilities: 50257 },
      },
    },
    findings,
    // As in the vocabulary above.
    complete: false,
    left_out: { heads: 0, readers: 2, tokens: 0 },
    verdict: "6 things are unusual beside 10 reference models: coordinate 138, ln_f and 5 heads, and 2 smaller.",
    causes: findings.slice(0, 6).map(({ text, norm_index, reproduce }, i) => ({
      subject: ["coordinate", "norm", "heads", "finding", "norm", "norm"][i],
      title: text,
      severity: 0.9 - i / 10,
      coordinates: i === 0 ? [138] : [],
      switched_off: false,
      norm_index,
      norms: norm_index === null ? [] : [norm_index],
      heads: [],
      readers: i === 0 ? [{ name: "head 3.7", norm_index: 6, share: 0.02, over_mean: 15.3 }] : [],
      numbers: ["largest gain", "effective dimension"].slice(0, i < 3 ? 2 - (i % 2) : 0).map((name) => ({
        measure: name.replace(" ", "_"),
        name,
        text: "13.9 times the norm's median",
        usual: "at most 2.94",
        value: 13.9,
        limit: 2.94,
        within: 8,
        of: 10,
        norm_index,
      })),
      why: "It adds most to the dot products of the norm's outputs.",
      advice: "Quantize this input with a scale for each channel.",
      reproduce,
      findings: [i],
      chart: i < 3 ? `cause-${i + 1}` : null,
    })),
    measures: [],
    references: ["GPT-2 medium", "stories260K"],
    features: [138, 378].map((coordinate, i) => ({
      coordinate,
      stack: "",
      switched_off_by: [],
      outlier_in: [0, 2 + i],
      norms: norms.length,
      embedding:
        i === 1
          ? null
          : {
              over_mean: 14.2,
              rows: [
                { token: 464, name: "The", entry: -1.25, share: 0.31 },
                { token: 50256, name: null, entry: 0.75, share: 0.125 },
              ],
            },
    })),
  };
}

/** The report with every string a trap and every measured number unknown. */
function hostile() {
  const report = gpt2(3);
  const traps = [
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=alert(1)>",
    "\u202eesrever.thgiew",
    "שכבה.נרמול.משקל",
    "a".repeat(180),
    "transformer.".repeat(24) + "weight",
    "$& $` {{x}} ${y}",
    "line\nbreak\ttab\u0000nul",
    "🦜.ln",
  ];
  report.model = {
    ...report.model,
    name: traps[0],
    title: traps[1],
    path: traps[4],
    evidence: traps[7],
    parameters: null,
    layers: null,
    width: null,
    heads_per_layer: null,
    tensors: null,
    files: [{ name: traps[5], bytes: null }],
    metadata: { [traps[4]]: traps[5], nested: traps[1] },
    other_norms: [],
    missing: traps,
    notes: [traps[3]],
  };
  report.norms = report.norms.map((norm, i) => ({
    ...norm,
    name: traps[i],
    role: traps[(i + 1) % 9],
    kind: traps[(i + 2) % 9],
    eps: null,
    width: null,
    layer: null,
    gain: i % 2 ? null : { ...norm.gain, tensor: traps[i], min: null, max: null, median_abs: null },
    bias: null,
    null_space: { dim: null, cosine_to_ones: null, top: [] },
    image:
      i % 3 === 0
        ? null
        : { ...norm.image, condition: null, effective_dimension: null, energy_top_8: null, longest: null },
    outliers: [{ coordinate: 0, gain: null, ratio_to_median: null }],
    reader_weights: [],
    connections_known: i % 2 === 0,
    next: { index: 0, name: traps[(i + 1) % 7], similarity: null, top_axis_cosine: null },
    reproduce: traps[i],
  }));
  report.findings = traps.map((text, i) => ({
    kind: text,
    norm: i % 2 ? text : null,
    norm_index: i % 2 ? i % 7 : null,
    text,
    numbers: { [text]: null, second: text },
    severity: i === 3 ? null : i / 9,
    reproduce: text,
    why: text,
  }));
  report.verdict = traps[0];
  report.causes = report.causes.map((cause, i) => ({
    ...cause,
    title: traps[i],
    readers: [{ name: traps[i], norm_index: 0, share: null, over_mean: null }],
    numbers: cause.numbers.map((number) => ({ ...number, name: traps[i], text: traps[i + 1], usual: traps[i + 2] })),
    why: traps[i + 1],
    advice: traps[i + 2],
  }));
  report.features[0].embedding.rows = traps.map((name, token) => ({ token, name, entry: null, share: null }));
  report.heads = [];
  report.ranges.norms = report.ranges.norms.map((norm, i) => ({
    name: traps[i],
    ...(i % 2
      ? { refused: traps[(i + 1) % 9] }
      : {
          output: { ...norm.output, largest: null, median: null, int8: { scale: null, typical_steps: null } },
          readers: norm.readers.map((reader) => ({ ...reader, role: traps[i], lowest: end(0, null), typical: null })),
        }),
  }));
  report.ranges.logits_refused = traps[0];
  report.vocabulary = { size: null, tied: false, unembedding: traps[0], final_norm: traps[5] };
  return report;
}

function empty() {
  const report = gpt2(2);
  return {
    ...report,
    norms: [],
    ranges: { ...report.ranges, norms: [] },
    heads: [],
    findings: [],
    verdict: "There is nothing to judge: no norm was found.",
    causes: [],
    features: [],
    vocabulary: null,
    model: {
      ...report.model,
      name: "no_norms",
      architecture: "",
      title: "",
      files: [],
      metadata: {},
      other_norms: [],
      missing: [],
      notes: [],
    },
  };
}

function single() {
  const report = gpt2(2);
  return {
    ...report,
    norms: [{ ...report.norms[2], index: 0, gain: null, bias: null, outliers: [] }],
    ranges: { ...report.ranges, norms: report.ranges.norms.slice(2, 3) },
    heads: report.heads.slice(0, 1),
    findings: report.findings.slice(0, 1),
    causes: [{ ...report.causes[0], norm_index: 0, norms: [0] }],
    features: [],
    model: { ...report.model, name: "one_norm", missing: [], notes: [] },
  };
}

function large() {
  const report = gpt2(80, 8192, 64);
  report.model = {
    ...report.model,
    name: "large_model",
    layers: 80,
    parameters: 70_553_706_496,
    tensors: 12_345,
    files: Array.from({ length: 61 }, (_, i) => ({ name: `model-${i + 1}-of-61.safetensors`, bytes: 4.8e9 })),
  };
  return report;
}

const [page, folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error("usage: node e2e/sample.mjs PAGE.html DIR");
  process.exit(2);
}
const template = readFileSync(page, "utf8");
const fill = (html, id, data) =>
  html.replace(`id="${id}">null<`, () => `id="${id}">${JSON.stringify(data).replaceAll("<", "\\u003c")}<`);

mkdirSync(folder, { recursive: true });
for (const [name, report] of Object.entries({
  gpt2: gpt2(),
  hostile: hostile(),
  empty: empty(),
  single: single(),
  large: large(),
})) {
  writeFileSync(
    join(folder, `sample-${name}.html`),
    fill(fill(template, "report-data", report), "chart-data", charts(report.norms)),
  );
}
