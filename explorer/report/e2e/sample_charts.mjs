// Vega-Lite charts over sample norms, of the kinds a report holds.

/** The gains of a few norms, as one of two panels. */
const panel = (id, title, values) => ({
  ...chart(id, "How do the gains spread, norm by norm?", "Each curve is a norm.", values, {
    mark: { type: "line" },
    encoding: { x: quantity("length", "size of the gain"), y: quantity("rank", "gains"), detail: { field: "norm" } },
  }),
  panel: title,
});

const chart = (id, question, answer, values, rest) => ({
  id,
  question,
  answer,
  description: `${question} ${answer}`,
  spec: {
    $schema: "https://vega.github.io/schema/vega-lite/v5.json",
    width: "container",
    height: 260,
    data: { values },
    ...rest,
  },
});

const order = {
  field: "norm",
  type: "nominal",
  sort: null,
  title: null,
  axis: { labelAngle: -45, labelOverlap: true },
};
const role = { field: "role", type: "nominal", title: null };
const quantity = (field, title, scale = {}) => ({ field, type: "quantitative", title, scale });

export function charts(norms) {
  const rows = norms.map(({ name, role: r, image, gain, null_space: n, next, layer }) => ({
    norm: name,
    role: r,
    layer,
    condition: image?.condition ?? null,
    effective: image?.effective_dimension ?? null,
    cosine: n.cosine_to_ones,
    min: gain?.min ?? null,
    max: gain?.max ?? null,
    median: gain?.median_abs ?? null,
    similarity: next?.similarity ?? null,
    top1: image?.energy_top_1 ?? null,
    top8: image?.energy_top_8 ?? null,
  }));
  const depth = (id, question, answer, y) =>
    chart(
      id,
      question,
      answer,
      rows.filter((row) => row[y.field] !== null),
      {
        mark: { type: "line", point: true, tooltip: { content: "data" } },
        encoding: { x: order, y, color: role },
      },
    );
  return [
    ...["cause-1", "cause-2"].map((id) =>
      depth(id, "What is unusual?", "The grey band is usual.", quantity("max", "largest gain", { type: "symlog" })),
    ),
    depth(
      "condition-by-depth",
      "How stretched is each norm’s image?",
      "The images grow more stretched with depth, and the last norm stands far above all others.",
      quantity("condition", "longest : shortest axis", { type: "log" }),
    ),
    chart(
      "spectra",
      "How are the lengths of the axes spread?",
      "A few long axes, then a slow decline: one line a norm, darker with depth.",
      norms.flatMap(({ name, index, image }) =>
        (image?.spectrum ?? []).map(({ rank, length }) => ({ norm: name, index, rank, length })),
      ),
      {
        height: 340,
        mark: { type: "line", strokeWidth: 1 },
        encoding: {
          x: quantity("rank", "rank of the axis", { type: "log", nice: false }),
          y: quantity("length", "semi-axis", { type: "log", nice: false }),
          detail: { field: "norm" },
          color: { field: "index", type: "quantitative", title: "place in the model" },
        },
      },
    ),
    ...["Norms of attention", "Norms of the MLPs"].map((title, k) =>
      panel(
        `gains-${k}`,
        title,
        norms
          .filter((_, i) => i % 2 === k || norms.length === 1)
          .flatMap(({ name, image }) =>
            (image?.spectrum ?? []).map(({ rank, length }) => ({ norm: name, rank, length })),
          ),
      ),
    ),
    chart(
      "gain-range",
      "How far do the gains reach?",
      "Most gains stay below one; the final norm holds one of 17.4.",
      rows.filter(({ min }) => min !== null),
      {
        encoding: { x: order },
        layer: [
          {
            mark: { type: "rule", tooltip: { content: "data" } },
            encoding: { y: quantity("min", "gain", { type: "symlog", constant: 0.1 }), y2: { field: "max" } },
          },
          { mark: { type: "point" }, encoding: { y: { field: "median", type: "quantitative" } } },
        ],
      },
    ),
    depth(
      "null-direction",
      "Is the lost direction still the mean?",
      "In the first layers the null direction leaves the all-ones vector; later norms keep it.",
      quantity("cosine", "cosine to all ones", { domain: [0, 1] }),
    ),
    depth(
      "effective-dimension",
      "How many directions carry the output?",
      "Between a third and nine tenths of the width.",
      quantity("effective", "effective dimension"),
    ),
    chart(
      "energy",
      "How much lies in the longest axes?",
      "A tenth in eight axes, but three fifths in the final norm.",
      rows
        .flatMap(({ norm, top1, top8 }) => [
          { norm, share: top1, axes: "longest" },
          { norm, share: top8, axes: "eight longest" },
        ])
        .filter(({ share }) => share !== null),
      {
        mark: { type: "bar", tooltip: true },
        encoding: {
          x: order,
          xOffset: { field: "axes" },
          y: { ...quantity("share", "share of energy"), axis: { format: "%" } },
          color: { field: "axes", type: "nominal", title: null },
        },
      },
    ),
    chart(
      "outliers",
      "Do the same coordinates stand out everywhere?",
      "Coordinates 138, 378 and 447 return in most norms.",
      norms
        .flatMap(({ name, outliers }) =>
          outliers.map(({ coordinate, ratio_to_median: ratio }) => ({ norm: name, coordinate, ratio })),
        )
        .filter(({ ratio }) => ratio !== null),
      {
        height: 300,
        mark: { type: "rect", tooltip: true },
        encoding: {
          x: order,
          y: { field: "coordinate", type: "ordinal" },
          color: { field: "ratio", type: "quantitative", title: "× median", scale: { type: "log" } },
        },
      },
    ),
    depth(
      "similarity",
      "How alike are neighbouring norms?",
      "Each norm resembles the next one of its kind more than its neighbour.",
      quantity("similarity", "cosine of the gains"),
    ),
  ];
}
