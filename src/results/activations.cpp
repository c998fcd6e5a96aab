#include <normscope/results/documents.hpp>

#include <algorithm>
#include <array>

#include "shared.hpp"

namespace normscope::results {
namespace {

/// Tokens listed by name.
constexpr std::size_t listed_next_tokens = 20;

constexpr std::array<const char*, analysis::norm_parts> names_of_parts{"neither", "projection", "scaling",
                                                                       "both"};

}  // namespace

template <class V>
void fields(V& v, const analysis::Spread& spread) {
  v("least", spread.least);
  v("low", spread.low, "5 % of the blocks are at most this");
  v("median", spread.median);
  v("high", spread.high, "95 % of the blocks are at most this");
  v("most", spread.most);
  v("mean", spread.mean);
  v("deviation", spread.deviation, "standard deviation");
}

template <class V>
void fields(V& v, const analysis::Feature& feature) {
  v("coordinate", feature.coordinate);
  v("rms", feature.rms, "root mean square over the rows");
  v("share", feature.share, "of the sum of |x|^2");
  v("largest", feature.largest, "of |x|");
  v("row", feature.row, "where it is largest, from 0");
}

template <class V>
void fields(V& v, const analysis::AxisUse& axis) {
  v("rank", positive(axis.rank + 1), "1: the longest");
  v("length", axis.length, "of the semi-axis");
  v("available", axis.available, "its share of the sum of the squared semi-axes");
  v("used", axis.used, "its share of the sum of |y - bias|^2 over the rows");
}

struct ObservedFields {
  std::string name{};
  const NormSpec& spec = empty<NormSpec>();
  std::uint64_t calls = 0;
  const analysis::Summary& summary = empty<analysis::Summary>();
};

template <class V>
void fields(V& v, const ObservedFields& x) {
  const analysis::Summary& summary = x.summary;
  v.define("norm");
  v("name", x.name, "of the module");
  v("kind", DividingKind{x.spec.kind});
  v("width", positive(x.spec.width));
  v("groups", positive(x.spec.groups));
  v("eps", x.spec.eps);
  v("calls", x.calls, "of the module");
  v("rows", summary.rows, "finite rows, which the rest is about");
  v("not_finite", summary.not_finite, "rows left out");
  v("sigma", nullable(summary.rows != 0, summary.sigma),
    "the number that the norm divides a block by, over all blocks");
  v("ones_share", summary.ones_share,
    "share of the sum of |x|^2 along all-ones: what projection removes, or would remove for kinds that "
    "do not centre");
  v("most_ones_share", summary.most_ones_share, "the largest of a single row");
  v("least_radius", summary.least_radius,
    "distance of the normalized row from the centre in units of the sphere's radius: 1 but for eps");
  v("mean_radius", summary.mean_radius);
  v("frozen_scale_error", summary.frozen_scale_error,
    "root mean square of the relative error of y - bias where every row is divided by the mean sigma");
  v("largest_output", finite_or_null(summary.largest_output),
    "|y| over all rows and features, which the ranges of the report bound; null beyond the range of double");
  v("features", summary.features, "entries of x with the largest shares");
  v("axes", summary.axes, "the longest principal axes of the image");
  v("sampled", summary.sampled, "rows that the last four numbers are computed from");
  v("used_dimension", summary.used_dimension, "participation ratio of the second moments of y - bias");
  v("available_dimension", summary.available_dimension, "participation ratio of the squared semi-axes");
  v("mean_curvature", finite_or_null(summary.mean_curvature),
    "of the norm at the sampled rows; null if infinite");
  v("most_curvature", finite_or_null(summary.most_curvature), "null if infinite");
}

template <class V>
void fields(V& v, const analysis::KeyCounts& counts) {
  v.define("key_count");
  v("selectable", counts.selectable);
  v("undecided", counts.undecided);
}

struct ContextKeyFields {
  const models::Head& head;
  const analysis::ContextKeys& keys;
};

template <class V>
void fields(V& v, const ContextKeyFields& x) {
  v.define("head");
  v("layer", not_negative(x.head.layer));
  v("stack", x.head.stack);
  v("head", not_negative(x.head.head));
  v("norm", x.keys.norm);
  v("contexts", x.keys.contexts);
  v("keys", x.keys.keys, "of all contexts together");
  v("own", one_of<"scaling", "both">(names_of_parts[static_cast<std::size_t>(x.keys.own)]),
    "what the model's norm does: a LayerNorm both, an RMSNorm scales");
  v("counts", nullable(x.keys.refused.empty(), object([&](auto& counts) {
                         for (std::size_t i = 0; i < names_of_parts.size(); ++i) {
                           counts(names_of_parts[i], x.keys.counts[i]);
                         }
                       })),
    "keys that some query gives the strictly highest score of their context, behind a norm that does this");
  v("refused", x.keys.refused, "why there are no counts; empty otherwise");
}

struct NextTokenFields {
  const analysis::NextToken& token;
  const std::vector<std::string>& names;
};

template <class V>
void fields(V& v, const NextTokenFields& x) {
  v.define("token");
  v("token", x.token.token);
  v("name", name_or_null(x.names, x.token.token));
  v("rows", x.token.rows, "rows that have it among the likeliest");
  v("first", x.token.first, "rows where it is the likeliest");
  v("answer", x.token.answer, "whether it can have the largest logit");
  v("lead_at_most", finite_or_null(x.token.lead_at_most),
    "proved bound of the lead of its logit over all others; null for none");
}

struct NextTokensFields {
  const analysis::NextTokens& next;
  const std::vector<std::string>& names;

  [[nodiscard]] std::size_t with(proof::Answer answer) const {
    return static_cast<std::size_t>(
        std::count_if(next.tokens.begin(), next.tokens.end(),
                      [&](const analysis::NextToken& token) { return token.answer == answer; }));
  }
};

template <class V>
void fields(V& v, const NextTokensFields& x) {
  const analysis::NextTokens& next = x.next;
  std::vector<analysis::NextToken> list = next.tokens;
  std::stable_partition(list.begin(), list.end(),
                        [](const analysis::NextToken& token) { return token.answer != proof::Answer::yes; });
  list.resize(std::min(list.size(), listed_next_tokens));
  v.define("next");
  v("rows", next.rows, "of the final norm that were measured");
  v("mean_divergence", not_negative(next.mean_divergence),
    "KL divergence in nats of the next-token distribution where the row is divided by the mean deviation "
    "instead of its own");
  v("median_divergence", not_negative(next.median_divergence));
  v("most_divergence", not_negative(next.most_divergence));
  v("changed", fraction(next.changed), "share of the rows whose likeliest token changes with it");
  v("tokens", next.tokens.size(), "among the likeliest after some row, and asked about");
  v("reachable", x.with(proof::Answer::yes), "of those, tokens that have the largest logit somewhere");
  v("unreachable", x.with(proof::Answer::no), "tokens that never have it, which is proved");
  v("undecided", x.with(proof::Answer::undecided));
  v("left_out", next.left_out, "likeliest tokens that were not asked about");
  v("list",
    each(list,
         [&](const analysis::NextToken& token) {
           return NextTokenFields{token, x.names};
         }),
    "unreachable and undecided tokens, then the most frequent others");
}

template <class V>
void fields(V& v, const analysis::InModel& within) {
  v.define("in_model");
  v("heads",
    each(within.heads,
         [&](const analysis::ContextKeys& keys) {
           return ContextKeyFields{within.model ? within.model->heads[keys.head] : empty<models::Head>(),
                                   keys};
         }),
    "heads whose keys were measured, a selection spread evenly over all");
  v("final_norm", within.final_norm, "that the unembedding reads, empty where it reads none");
  v("next", nullable(within.next, [&](const analysis::NextTokens& next) {
      return NextTokensFields{next, within.tokens};
    }));
  v("next_refused", within.next_refused, "why `next` is null; empty otherwise");
}

struct ActivationsFields {
  const std::string& model;
  const std::vector<ObservedFields>& norms;
  const std::vector<std::pair<std::string, std::string>>& not_understood;
  const analysis::InModel* within;
};

template <class V>
void fields(V& v, const ActivationsFields& x) {
  begin(v, "activations");
  v("model", x.model, "class of the model");
  v("norms", x.norms, "in the order of their first calls");
  v("not_understood",
    each(x.not_understood,
         [](const std::pair<std::string, std::string>& norm) {
           return object([&norm](auto& item) {
             item("name", norm.first);
             item("reason", norm.second);
           });
         }),
    "norms that were called and are not measured, not in every call, or under an assumption");
  v("in_model", nullable(x.within != nullptr, x.within ? *x.within : empty<analysis::InModel>()),
    "what the rows mean to heads and logits; null where no model was opened beside them");
}

Json activations(const std::string& model, const std::vector<analysis::ObservedNorm>& norms,
                 const std::vector<std::pair<std::string, std::string>>& not_understood,
                 const analysis::InModel* within) {
  std::vector<ObservedFields> observed;
  for (const analysis::ObservedNorm& norm : norms) {
    observed.push_back({norm.name, norm.spec, norm.calls, norm.summary});
  }
  return json_of(ActivationsFields{model, observed, not_understood, within});
}
Json describe_activations(SchemaMaker& maker) {
  return maker.schema_of(ActivationsFields{{}, {}, {}, nullptr});
}

}  // namespace normscope::results
