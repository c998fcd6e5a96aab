#include <normscope/results/documents.hpp>

#include "shared.hpp"

namespace normscope::results {

template <>
inline constexpr auto last_value<signature::Verdict> = signature::Verdict::undecided;
template <>
inline constexpr auto last_value<signature::Reason> = signature::Reason::capped;
template <>
inline constexpr auto last_value<signature::FinalNorm> = signature::FinalNorm::unknown;
template <>
inline constexpr auto last_value<signature::Relation> = signature::Relation::unrelated;

/// What the documents say of outputs.
struct OutputFacts {
  std::string name{};
  std::size_t rows = 0;
  std::size_t tokens = 0;
  Dtype precision = Dtype::F64;
  bool precision_stated = false;
  double soft_cap = 0.0;
};

namespace {

OutputFacts facts_of(const signature::Outputs& outputs) {
  return {outputs.name(),
          outputs.rows(),
          outputs.vocabulary(),
          outputs.precision().dtype,
          outputs.precision_is_stated(),
          outputs.soft_cap()};
}

template <class V>
void add_precision(V& v, const OutputFacts& outputs) {
  v("precision", one_of<"F64", "F32", "F16", "BF16">(to_string(outputs.precision)),
    "in which logits are taken to have been computed");
}

}  // namespace

struct SignatureRow {
  std::size_t index;
  const signature::RowResult& row;
};

template <class V>
void fields(V& v, const SignatureRow& x) {
  v.define("row");
  v("row", x.index);
  v("verdict", x.row.verdict);
  v("reason", x.row.reason,
    "on_surface: on the ellipse within the noise expected; off_subspace: no hidden state gives these "
    "logits; outside: only a hidden state longer than the norm makes; inside: shorter than a norm makes "
    "it, unless its input was tiny; beyond_noise: further away than noise usually is, nearer than it may "
    "be; few_values: they do not determine the hidden state; filled: outputs fill this ellipsoid; "
    "capped: log-probabilities behind a soft cap");
  v("proved", x.row.proved, "no input of the norm gives this row: a certificate holds");
  v("values", x.row.values, "that were used");
  v("off_subspace", x.row.off, "distance of the row from the subspace, in logits with mean 0");
  v("off_subspace_units", x.row.off_units, "in units of what rounding explains");
  v("length", x.row.length, "of u, which is 1 on the ellipse");
  v("length_units", x.row.length_units, "length - 1 in units of what rounding explains");
  v("mean_square", finite_or_null(x.row.mean_square),
    "of the norm's input that this length needs; null where it is 1 or more, 0 for an ellipse from "
    "outputs, whose eps is not known");
  v("margin", x.row.margin,
    "of the best certificate that was tried, relative to the slack: above 0 it is a proof; 0 where none "
    "was tried");
}

struct SignatureVerifyFields {
  const signature::Verification& result;
  OutputFacts outputs;
  const SignatureSource& source;
};

template <class V>
void fields(V& v, const SignatureVerifyFields& x) {
  begin(v, "signature-verify");
  v("path", x.source.path, "of the model or ellipse");
  v("against", one_of<"model", "ellipse">(x.source.kind));
  v("outputs", x.source.outputs);
  v("rows", positive(x.outputs.rows));
  v("tokens", positive(x.outputs.tokens), "of the vocabulary");
  v("dimension", positive(x.source.dimension), "of u");
  add_precision(v, x.outputs);
  v("precision_stated", x.outputs.precision_stated, "whether --dtype said so");
  v("temperature", x.source.temperature);
  v("soft_cap", x.outputs.soft_cap, "0 without one");
  v("verdict", x.result.verdict);
  v("reason", x.result.reason, "the most frequent among rows with that verdict");
  v("proved", x.result.proved, "whether some row is proved not to be this model's");
  v("consistent", x.result.with(signature::Verdict::consistent), "rows");
  v("not_this_model", x.result.with(signature::Verdict::not_this_model));
  v("undecided", x.result.with(signature::Verdict::undecided));
  v("results", each(x.result.rows, [](const signature::RowResult& row, std::size_t index) {
      return SignatureRow{index, row};
    }));
}

Json signature_verify(const signature::Verification& result, const signature::Outputs& outputs,
                      const SignatureSource& source) {
  return json_of(SignatureVerifyFields{result, facts_of(outputs), source});
}
Json describe_signature_verify(SchemaMaker& maker) {
  return maker.schema_of(SignatureVerifyFields{{}, {}, {}});
}

template <class V>
void fields(V& v, const signature::Ellipse& ellipse) {
  v("semi_axes", ellipse.semi_axes, "descending");
  v("errors", ellipse.errors,
    "stated relative error of each semi-axis, estimated from the residual; not proved");
  v("drowned", ellipse.drowned(), "axes whose stated error exceeds 0.1");
  v("off", ellipse.off, "root mean square distance of a logit from the subspace");
  v("least_ritz", ellipse.least_ritz, "of the preconditioned normal matrix");
  v("largest_ritz", ellipse.largest_ritz);
}

struct SignatureExtractFields {
  const signature::Extraction& result;
  const signature::Subspace& subspace;
  OutputFacts outputs;
  const std::string& path;
};

template <class V>
void fields(V& v, const SignatureExtractFields& x) {
  begin(v, "signature-extract");
  v("outputs", x.outputs.name);
  v("path", x.path, "of the ellipse; empty where it is not written");
  v("rows", x.result.rows);
  v("distinct_rows", x.result.distinct);
  v("tokens", x.outputs.tokens);
  add_precision(v, x.outputs);
  v("rank", x.subspace.rank, "dimension of the subspace, number of axes");
  v("unknowns", signature::unknowns(x.subspace.rank), "of an ellipse with so many axes");
  v("rounds", x.result.rounds, "of conjugate gradients");
  v("surface", x.result.surface, "root mean square over the rows of |u| - 1");
  v("relative_surface", x.result.relative_surface,
    "the same over what rows of a Gaussian cloud have: near 0 on an ellipse, near 1 without a norm");
  v("ellipse", x.result.ellipse, "null where no ellipsoid fits");
}

Json signature_extract(const signature::Extraction& result, const signature::Subspace& subspace,
                       const signature::Outputs& outputs, const std::string& path) {
  return json_of(SignatureExtractFields{result, subspace, facts_of(outputs), path});
}
Json describe_signature_extract(SchemaMaker& maker) {
  return maker.schema_of(SignatureExtractFields{{}, {}, {}, {}});
}

struct SignatureKindFields {
  const signature::Kind& result;
  const signature::Subspace& subspace;
  OutputFacts outputs;
};

template <class V>
void fields(V& v, const SignatureKindFields& x) {
  const bool was_fitted = x.result.extraction.rows > 0;
  begin(v, "signature-kind");
  v("outputs", x.outputs.name);
  v("rows", x.outputs.rows);
  v("tokens", x.outputs.tokens);
  add_precision(v, x.outputs);
  v("norm", x.result.norm);
  v("rank", x.subspace.rank, "dimension of the subspace that rows lie in, each with mean 0");
  v("fills", x.subspace.fills, "the subspace is as large as tokens or rows allow");
  v("width", x.result.width, "of the hidden state; 0 where it is not known");
  v("by_width", x.result.by_width,
    "LayerNorm of one width and RMSNorm of one less give the same outputs: the norm is named by the "
    "rounder width");
  v("rows_needed", x.result.rows_needed, "to tell whether there is a norm; 0 where they were there");
  v("relative_surface", nullable(was_fitted, x.result.extraction.relative_surface),
    "as in signature-extract; null without a fit");
  v("noise", x.subspace.noise, "what rounding makes a singular value");
  v("singular_values", x.subspace.singular_values,
    "of rows spread over all, their mean subtracted, over the root of their number; descending");
}

Json signature_kind(const signature::Kind& result, const signature::Subspace& subspace,
                    const signature::Outputs& outputs) {
  return json_of(SignatureKindFields{result, subspace, facts_of(outputs)});
}
Json describe_signature_kind(SchemaMaker& maker) { return maker.schema_of(SignatureKindFields{{}, {}, {}}); }

struct SignatureCompareFields {
  const signature::Comparison& result;
  const std::string& one;
  const std::string& other;
};

template <class V>
void fields(V& v, const SignatureCompareFields& x) {
  begin(v, "signature-compare");
  v("one", x.one);
  v("other", x.other);
  v("relation", x.result.relation);
  v("scale", x.result.scale, "of the second over the first: the middle of the ratios of extents");
  v("outside", x.result.outside,
    "part of the second's semi-axes outside the first's subspace, in root mean square");
  v("outside_by_chance", x.result.by_chance, "the same of subspaces that have nothing to do with each other");
  v("shape", x.result.shape,
    "root mean square difference of extents along the first's axes, the scale undone");
  v("centre", x.result.centre, "distance of the centres over the root mean square semi-axis");
  v("tolerance", x.result.tolerance, "what stated errors explain of `shape`");
}

Json signature_compare(const signature::Comparison& result, const std::string& one,
                       const std::string& other) {
  return json_of(SignatureCompareFields{result, one, other});
}
Json describe_signature_compare(SchemaMaker& maker) {
  return maker.schema_of(SignatureCompareFields{{}, {}, {}});
}

}  // namespace normscope::results
