#include <normscope/results/documents.hpp>

#include <vector>

#include "shared.hpp"

namespace normscope::results {
namespace {

auto bounds(const heads::Spread& spread) {
  return defined("bounds", std::array{spread.lower, spread.upper}, "lower and upper bound");
}

bool has_without_projection(const heads::Attention& attention) {
  return attention.uniform_without_projection ||
         (attention.distances && attention.distances->uniform_at_zero_without_projection);
}

}  // namespace

template <class V>
void fields(V& v, const models::Rotary& rotary) {
  v("dims", rotary.dims, "number of coordinates that are rotated, in pairs");
  v("interleaved", rotary.interleaved, "whether pair j is coordinates 2j and 2j + 1, else j and j + dims/2");
  v("score_factor", rotary.score_factor, "factor on what these coordinates add to a score");
  v("frequencies_known", !rotary.frequencies.empty(),
    "false where frequencies change with the length of the context");
  v("context", nullable(rotary.context != 0, positive(rotary.context)),
    "context length of the model, in positions");
}

/// Bounds of the smallest and the largest spread.
struct BothBounds {
  const heads::Spread& uniform;
  const heads::Spread& sharpest;
};

template <class V>
void fields(V& v, const BothBounds& x) {
  v("uniform_bounds", bounds(x.uniform));
  v("sharp_bounds", bounds(x.sharpest));
}

template <class V>
void fields(V& v, const heads::OverDistances& over) {
  v("within", nullable(over.within != 0, positive(over.within)),
    "uniform_bounds and sharp_bounds are over contexts with distances below this; null: every distance");
  v("enumerated", over.enumerated,
    "whether each distance was bounded by itself; otherwise pairs that rotate slowly are bounded near "
    "their middle angle and the others at any angle");
  v("sharp_at_most_anywhere", over.sharpest_anywhere,
    "proved upper bound of the spread over all distances, for every context length and all frequencies");
  v("uniform_at_most_anywhere", over.uniform_anywhere,
    "proved: for some query, no context at any distance has a larger spread");
  v("at_distance_zero", object([&](auto& at_zero) {
      fields(at_zero, BothBounds{over.uniform_at_zero, over.sharpest_at_zero});
      at_zero.maybe(over.uniform_at_zero_without_projection.has_value(), "without_projection",
                    BothBounds{or_empty(over.uniform_at_zero_without_projection),
                               or_empty(over.sharpest_at_zero_without_projection)},
                    "the same with the mean left in");
    }),
    "of two keys at the query's own position, as if without rotation; does not hold at other distances");
  v("curve",
    each(over.curve, [](const heads::OverDistances::At& at) { return pair(at.distance, at.spread); }),
    "pairs of a distance and the spread between two keys at equal distance, attained by a query; empty "
    "when frequencies are unknown");
}

template <class V>
void fields(V& v, const heads::WeightProof& proof) {
  v("distances", nullable(proof.distances != 0, static_cast<std::int64_t>(proof.distances)),
    "bounds distances below this; null: every distance");
  v("weights", proof.weights, "w_j of each rotated pair, in order");
  v("turns", proof.turns, "ε_j of each: 1 for a pair that may turn freely");
  v("still", proof.still, "coordinates of N: slow pairs, then those that do not turn");
  v("factor", proof.factor, "F of them, row after row");
  v("query_multiplier", proof.query_multiplier, "of |u|² <= 1 where |q'| is largest");
  v("key_multiplier", proof.key_multiplier, "of |v|² <= 1 where |k'| is largest");
  v("spread", proof.spread, "that is proved, before a soft cap");
}

template <class V>
void fields(V& v, const heads::DistanceProof& proof) {
  v("distances", static_cast<std::int64_t>(proof.distances));
  v("query_square", proof.query_square, "κ²");
  v("key_square", proof.key_square, "ρ²");
  v("reach", proof.reach, "bounds |qᵀ(R_t k − z)| at each distance");
  v("centre", proof.centre, "z, head_dim numbers");
  v("spread", proof.spread, "that is proved, before a soft cap");
}

/// Two points of the unit ball; of rotary heads (`turning`) with their distances from the query, unless these
/// are 0.
template <bool with_distances, class V>
void add_points(V& v, const heads::KeyPair& keys, bool turning) {
  constexpr const char* about =
      "v of the unit ball, width numbers; head_dim if the head has its own norm of keys";
  v("high", keys.high_point, about);
  v("low", keys.low_point, about);
  if (!with_distances) return;
  v.maybe(turning, "high_distance", keys.high_distance);
  v.maybe(turning, "low_distance", keys.low_distance);
}

template <bool with_distances, class V>
void add_uniform(V& v, const heads::Spread& uniform, const std::vector<heads::UnavoidableContext>& contexts,
                 bool turning) {
  v("query", uniform.point, "u of the query that attains the upper end");
  v("unavoidable",
    each(contexts,
         [=](const heads::UnavoidableContext& context) {
           return object([=, &context](auto& item) {
             add_points<with_distances>(item, context.keys, turning);
             item("share", context.share, "λ_i, sum 1");
           });
         }),
    "contexts that prove the lower end; empty where that is 0. A point v stands for keys_fill v/|v|");
}

constexpr const char* about_sharp_query = "u of the query that attains the lower end";

/// Bounds for two keys at equal distance 0.
template <class V>
void add_equal_distance(V& v, const heads::Spread& uniform,
                        const std::vector<heads::UnavoidableContext>& proof, const heads::Spread& sharpest) {
  v("uniform", object([&](auto& part) { add_uniform<false>(part, uniform, proof, false); }));
  v("sharp", object([&](auto& part) {
      part("query", sharpest.point, about_sharp_query);
      part("multiplier", sharpest.multiplier, "of |u|² <= 1");
    }));
}

template <class V>
void add_without_projection(V& v, const heads::Attention& attention) {
  const bool turning = attention.distances.has_value();
  const auto& uniform = turning ? attention.distances->uniform_at_zero_without_projection
                                : attention.uniform_without_projection;
  const auto& sharpest = turning ? attention.distances->sharpest_at_zero_without_projection
                                 : attention.sharpest_without_projection;
  add_equal_distance(v, or_empty(uniform), attention.uniform_without_projection_proof, or_empty(sharpest));
  const heads::Fills& fills = attention.fills_without_projection;
  const bool own = fills.queries != 1.0 || fills.keys != 1.0;
  v.maybe(own, "queries_fill", fills.queries,
          "as in own_norms, with the mean left in; absent without norms of their own");
  v.maybe(own, "keys_fill", fills.keys, "the same");
  v.maybe(own, "queries_radius", fills.queries_radius, "σ behind it");
  v.maybe(own, "keys_radius", fills.keys_radius, "the same");
}

/// The certificates of the bounds, before a soft cap.
struct HeadCertificates {
  const models::Head& head;
  const heads::HeadReach& reach;
  const heads::Attention& attention;
};

template <class V>
void fields(V& v, const HeadCertificates& x) {
  const heads::Attention& attention = x.attention;
  const bool turning = attention.distances.has_value();
  const heads::OverDistances& over = or_empty(attention.distances);
  const auto own = [](const std::string& norm, NormKind kind, double eps) {
    return nullable(!norm.empty(), object([=](auto& part) {
      part("kind", DividingKind{kind});
      part("eps", eps);
    }));
  };
  v("norm", object([&](auto& norm) { norm("kind", DividingKind{x.reach.norm_kind}); }),
    "the norm that the head reads");
  v("query_norm", own(x.reach.query_norm, x.reach.query_norm_kind, x.reach.query_norm_eps),
    "the head's own norm of queries");
  v("key_norm", own(x.reach.key_norm, x.reach.key_norm_kind, x.reach.key_norm_eps),
    "the head's own norm of keys");
  v("uniform", object([&](auto& part) {
      add_uniform<true>(part, attention.most_uniform, attention.uniform_proof, turning);
      part.maybe(turning, "anywhere", nullable(!over.anywhere_point.empty(), object([&](auto& anywhere) {
                   anywhere("query", over.anywhere_point, "u of the query");
                   anywhere("proof", nullable(true, over.anywhere_proof),
                            "weights under which no context of this query is wider; its query_multiplier "
                            "proves nothing");
                 })),
                 "proves distances.uniform_at_most_anywhere; null where no query is known to be reached");
    }));
  v("sharp", object([&](auto& part) {
      part("query", attention.sharpest.point, about_sharp_query);
      part("keys", nullable(attention.sharpest_keys, [&](const heads::KeyPair& keys) {
             return object([&keys, turning](auto& points) { add_points<true>(points, keys, turning); });
           }));
      part.maybe(!turning, "multiplier", attention.sharpest.multiplier,
                 "of |u|² <= 1, of heads that are not rotary");
      part.maybe(turning, "everywhere", nullable(true, over.everywhere), "proves sharp_at_most_anywhere");
      part.maybe(turning, "in_context", over.in_context,
                 "proves the upper end of sharp_bounds where distances are not enumerated");
      part.maybe(turning, "by_distance", nullable(over.by_distance.has_value(), or_empty(over.by_distance)),
                 "proves it where they are");
    }));
  v.maybe(x.head.rotary && turning, "frequencies", or_empty(x.head.rotary).frequencies,
          "radians a position of each pair of the rotation");
  v.maybe(turning, "at_distance_zero", object([&](auto& part) {
            add_equal_distance(part, over.uniform_at_zero, over.uniform_at_zero_proof, over.sharpest_at_zero);
          }),
          "of rotary heads: what proves distances.at_distance_zero");
  v.maybe(has_without_projection(attention), "without_projection",
          object([&](auto& part) { add_without_projection(part, attention); }),
          "what proves without_projection, or that of distances.at_distance_zero");
  const bool fills = attention.queries_fill != 1.0 || attention.keys_fill != 1.0;
  v.maybe(fills, "queries_radius", attention.queries_radius, "σ behind queries_fill = σ/sqrt(σ² + N'ε')");
  v.maybe(fills, "keys_radius", attention.keys_radius, "the same of keys_fill");
}

/// Queries, keys and rows that attain the extremes.
template <class V>
void add_queries(V& v, const heads::Attention& attention, bool known) {
  constexpr const char* about_query =
      "with --queries: head_dim numbers; empty where no query is known to attain it";
  v.maybe(known, "uniform_query", attention.most_uniform.query, about_query);
  v.maybe(known, "uniform_row", attention.most_uniform.row,
          "with --queries: the norm's output that makes the query; empty where none is known");
  v.maybe(known, "sharp_query", attention.sharpest.query, about_query);
  v.maybe(known, "sharp_row", attention.sharpest.row, "the same");
  const bool turning = attention.distances.has_value();
  const heads::KeyPair& keys = or_empty(attention.sharpest_keys);
  v.maybe(attention.sharpest_keys.has_value(), "sharp_keys", object([&](auto& part) {
            part("high_row", keys.high_row);
            part("low_row", keys.low_row);
            part.maybe(turning, "high_distance", keys.high_distance);
            part.maybe(turning, "low_distance", keys.low_distance);
          }),
          "with --queries: the norm's outputs that make the keys of the highest and the lowest score "
          "under sharp_query, and how far from it they stand; empty rows where none is known");
  v.maybe(known && !turning, "sharp_multiplier", attention.sharpest.multiplier,
          "with --queries: multiplier of |u|² <= 1 in the proof of the upper end of sharp_bounds; of heads "
          "that are not rotary");
}

template <class V>
void fields(V& v, const HeadFields& x) {
  const models::Head& head = x.head;
  const heads::HeadReach& reach = x.reach;
  const heads::Attention& attention = or_empty(reach.attention);
  const bool known = reach.attention.has_value();
  v.define("head");
  v("stack", head.stack, "which stack has the layer, such as decoder; empty where all heads are in one");
  v("layer", not_negative(head.layer));
  v("head", not_negative(head.head));
  v("pass", nullable(!reach.pass.empty(), one_of<"first", "later">(reach.pass)),
    "passes through shared weights (ALBERT) that this entry is of, where they read different norms");
  v("key_value_head", not_negative(head.key_value_head));
  v("head_dim", head.head_dim);
  v("scale", head.scale, "of the scores, usually 1/sqrt(head_dim)");
  v("norm", reach.norm, "norm it reads");
  v("query", weight_or_null(head.query));
  v("key", weight_or_null(head.key));
  v("value", weight_or_null(head.value));
  v("rotary", head.rotary.has_value(), "rotary position embedding");
  v("rotation", head.rotary, "how queries and keys are rotated by position; null where they are not");
  v("soft_cap", nullable(head.soft_cap > 0.0, head.soft_cap),
    "c where scores s pass c tanh(s/c); all spreads are of capped scores then");
  v("window", nullable(head.window, [](const std::size_t& window) { return positive(window); }),
    "positions back that the head sees, its own included");
  v("uniform_spread", nullable(known && attention.narrow(), attention.most_uniform.upper),
    "largest difference between the scores of two keys, for the query that makes it smallest; null where "
    "refused, and where the head's own norms or a rotation leave the bounds further apart than a "
    "thousandth of the sharpest");
  v("sharp_spread", nullable(known && attention.narrow(), attention.sharpest.lower),
    "the same for the query that makes it largest");
  v.maybe(head.between && reach.norm == head.norm, "between", weight_or_null(head.between),
          "linear map between the norm and the projections, where they do not read the norm itself "
          "(ALBERT's first pass)");
  v.maybe(!known, "refused", reach.refused, "why the spreads are not known");
  v.maybe(known, "uniform_bounds", bounds(attention.most_uniform),
          "proved lower and upper bound of the smallest spread; for rotary heads over the contexts that "
          "distances.within gives, else over all");
  v.maybe(known, "sharp_bounds", bounds(attention.sharpest),
          "proved lower and upper bound of the largest spread; for rotary heads the lower bound is attained "
          "by sharp_keys, and 0 where no attaining keys are known");
  v.maybe("distances", attention.distances, "present for rotary heads only");
  v.maybe(attention.uniform_without_projection.has_value(), "without_projection",
          BothBounds{or_empty(attention.uniform_without_projection),
                     or_empty(attention.sharpest_without_projection)},
          "the same with the mean left in; absent where the norm takes none out, and of rotary heads, "
          "which have it at distance zero");
  v.maybe(known, "uniform_without_scaling", attention.uniform_without_scaling,
          "whether, without scaling, some query gives all keys one score; sharpness has no bound then");
  const bool own = known && (!reach.query_norm.empty() || !reach.key_norm.empty());
  v.maybe(own, "own_norms", object([&](auto& norms) {
            norms("query", text_or_null(reach.query_norm));
            norms("key", text_or_null(reach.key_norm));
            norms("queries_fill", fraction(attention.queries_fill));
            norms("keys_fill", fraction(attention.keys_fill));
          }),
          "the head's own norms of queries and keys, or null for each, and the fraction of the balls of "
          "their outputs that hidden states provably attain; 0 where nothing is known. Absent without such "
          "norms");
  if (x.details.queries) add_queries(v, attention, known);
  if (!x.details.certificates) return;
  v.maybe(known, "certificates", HeadCertificates{head, reach, attention},
          "with --proofs: what proves each bound from the weights, before a soft cap; "
          "docs/certificates.md has the inequalities");
}

Json HeadFields::json() const {
  JsonWriter writer;
  fields(writer, *this);
  return writer.take();
}
Json HeadFields::schema(SchemaMaker& maker) const {
  return maker.object_of([this](SchemaMaker& inner) { fields(inner, *this); });
}

struct HeadsFields {
  std::string path;
  const models::Model& model;
  const std::vector<heads::HeadReach>& bounded;
  const HeadDetails& details;
};

template <class V>
void fields(V& v, const HeadsFields& x) {
  begin(v, "heads");
  v("path", x.path, "as given on the command line");
  v("architecture", x.model.architecture);
  v("notes", x.model.notes, "what was assumed, reinterpreted or could not be determined");
  v("heads",
    each(x.bounded,
         [&](const heads::HeadReach& reach) {
           return HeadFields{head_of(x.model, reach), reach, x.details};
         }),
    "one entry a head; two for a head whose weights serve several passes that read different norms");
  if (!x.details.inputs) return;
  v("inputs", InputsFields{*x.details.inputs},
    "what the command line named, and with --proofs every weight, bias and norm as it was used; "
    "docs/certificates.md");
}

Json heads(const files::Checkpoint& checkpoint, const models::Model& model,
           const std::vector<heads::HeadReach>& bounded, const HeadDetails& details) {
  return json_of(HeadsFields{checkpoint.path().string(), model, bounded, details});
}
Json describe_heads(SchemaMaker& maker) {
  return maker.schema_of(
      HeadsFields{{}, {}, {}, {.queries = true, .certificates = true, .inputs = verify::Inputs{}}});
}

}  // namespace normscope::results
