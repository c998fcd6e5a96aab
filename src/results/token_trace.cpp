#include <normscope/results/documents.hpp>

#include <algorithm>

#include "shared.hpp"

namespace normscope::results {
namespace {

using selectability::Selectability;

auto number(double value) { return defined("number_or_null", finite_or_null(value)); }

template <class V>
void add_token(V& v, std::size_t token, const std::vector<std::string>& names) {
  v("token", token);
  v("name", defined("name", name_or_null(names, token), "as text; null if no file names it"));
}

template <class V>
void add_continuation(V& v, const forward::Continuation& next, const std::vector<std::string>& names) {
  add_token(v, next.token, names);
  v("logit", number(next.logit));
  v("probability", number(next.probability));
}

std::vector<std::size_t> positions_with(const analysis::ContextKeys& keys, Selectability answer) {
  std::vector<std::size_t> positions;
  for (std::size_t t = 0; t < keys.first_context.size(); ++t) {
    if (keys.first_context[t] == answer) positions.push_back(t);
  }
  return positions;
}

/// Whether some input of the final norm gives the token the largest logit, where that was decided.
std::optional<proof::Answer> reach_of(const analysis::TokenTrace& trace, std::size_t token) {
  if (!trace.within.next) return {};
  for (const analysis::NextToken& next : trace.within.next->tokens) {
    if (next.token == token) return next.answer;
  }
  return {};
}

}  // namespace

template <class V>
void fields(V& v, const analysis::TracedAxis& axis) {
  v.define("axis");
  v("length", not_negative(axis.length));
  v("coordinate", axis.coordinate, "of the largest entry of its unit vector");
  v("weight", axis.weight, "that entry");
}

template <class V>
void fields(V& v, const analysis::TokenAtNorm& token) {
  v.define("token_at_norm", "the row x of one token that enters the norm");
  v("length", number(token.length), "|x|");
  v("added", number(token.added),
    "length of what was added to the stream since the norm before; |x| at the first norm");
  v("ones_share", number(token.ones_share), "share of |x|² along all-ones: what a projection removes");
  v("sigma", number(token.sigma), "what the norm divides by");
  v("radius", number(token.radius), "1 on the surface of the ellipsoid, less by eps");
  v("place", each(token.place, [](double along) { return number(along); }),
    "the output without bias along each of the axes, in units of the semi-axis");
}

/// What the maps that read the norm's output belong to, each once.
std::vector<std::string> reader_kinds(const models::Norm& norm) {
  std::vector<std::string> readers;
  for (const models::Linear& map : norm.readers) {
    const bool is_mlp = map.role == "mlp in" || map.role == "mlp gate";
    const std::string reader = is_mlp ? "mlp" : map.role == "unembedding" ? map.role : "attention";
    if (std::find(readers.begin(), readers.end(), reader) == readers.end()) readers.push_back(reader);
  }
  return readers;
}

struct TracedNormFields {
  const models::Norm& norm = empty<models::Norm>();
  bool centers = false;
  const std::vector<analysis::TracedAxis>& axes = empty<std::vector<analysis::TracedAxis>>();
  const std::vector<analysis::TokenAtNorm>& tokens = empty<std::vector<analysis::TokenAtNorm>>();
};

template <class V>
void fields(V& v, const TracedNormFields& x) {
  v.define("norm");
  v("name", x.norm.name);
  v("role", x.norm.role);
  v("layer", x.norm.layer);
  v("readers", reader_kinds(x.norm), "what reads its output: attention, mlp or unembedding");
  v("kind", to_string(x.norm.kind));
  v("centers", x.centers, "whether it subtracts the mean, the part along all-ones");
  v("width", positive(x.norm.width));
  v("eps", not_negative(x.norm.eps));
  v("axes", x.axes, "the longest, in order");
  v("tokens", x.tokens);
}

struct LostKey {
  std::size_t position = 0;
  std::size_t from = 0;
};

template <class V>
void fields(V& v, const LostKey& x) {
  v.define("lost_key");
  v("position", x.position);
  v("from", x.from, "the first position from which on no query gives the key the highest score so far");
}

std::vector<LostKey> lost_keys(const analysis::ContextKeys& keys) {
  std::vector<LostKey> lost;
  for (std::size_t t = 0; t < keys.lost_from.size(); ++t) {
    if (keys.lost_from[t] < keys.lost_from.size()) lost.push_back({t, keys.lost_from[t]});
  }
  return lost;
}

struct TracedAttentionFields {
  const models::Head& head;
  const analysis::TracedAttention& attention;
};

template <class V>
void fields(V& v, const TracedAttentionFields& x) {
  v.define("attention");
  v("layer", not_negative(x.head.layer));
  v("head", not_negative(x.head.head));
  v("key", not_negative(x.head.key_value_head), "index of its key-value head in the layer");
  v("norm", x.head.norm, "that it reads");
  v("weights", x.attention.weights,
    "of the queries at first_query and later, one for each position up to the query's own");
}

struct TracedHead {
  const models::Head& head;
  const analysis::ContextKeys& keys;
};

template <class V>
void fields(V& v, const TracedHead& x) {
  v.define("head");
  v("layer", not_negative(x.head.layer));
  v("head", not_negative(x.head.head));
  v("key", not_negative(x.head.key_value_head), "index of its key-value head in the layer");
  v("norm", x.keys.norm, "that it reads");
  v("selectable", positions_with(x.keys, Selectability::selectable),
    "positions whose keys some query gives the highest score of all");
  v("undecided", positions_with(x.keys, Selectability::undecided));
  v("lost", each(lost_keys(x.keys), [](const LostKey& key) { return key; }),
    "keys that no query selects; none of a head whose window is shorter than the text");
  v("refused", x.keys.refused, "why there are none; empty otherwise");
}

struct TokenTraceFields {
  std::string path;
  const models::Model& model;
  const analysis::TokenTrace& trace;
  const std::vector<std::string>& names;
  std::vector<TracedNormFields> norms;
};

struct PredictionFields {
  const TokenTraceFields& of;
  const forward::Prediction& prediction;
};

template <class V>
void fields(V& v, const PredictionFields& x) {
  v.define("prediction");
  v("likeliest", each(x.prediction.likeliest, [&](const forward::Continuation& next) {
      return object([&](auto& likely) {
        likely.define("likely");
        add_continuation(likely, next, x.of.names);
        likely(
            "reach", reach_of(x.of.trace, next.token),
            "whether some input of the final norm gives it the largest logit; null if that was not decided");
      });
    }));
  v("next",
    nullable(x.prediction.next,
             [&](const forward::Continuation& next) {
               return object([&](auto& follows) {
                 add_continuation(follows, next, x.of.names);
                 follows("rank", x.prediction.rank, "number of tokens with larger logits");
               });
             }),
    "the token that does follow; null at the end of the text");
}

template <class V>
void fields(V& v, const TokenTraceFields& x) {
  const analysis::TokenTrace& trace = x.trace;
  begin(v, "token-trace");
  v("path", x.path);
  v("architecture", x.model.title);
  v("tokens", each(trace.tokens, [&](std::size_t token) {
      return object([token, &x](auto& item) {
        item.define("token");
        add_token(item, token, x.names);
      });
    }));
  v("norms", x.norms, "of the residual stream, in the order of the forward pass; the last is the final norm");
  v("heads",
    each(trace.within.heads,
         [&](const analysis::ContextKeys& keys) {
           const bool known = keys.head < x.model.heads.size();
           return TracedHead{known ? x.model.heads[keys.head] : empty<models::Head>(), keys};
         }),
    "of heads that share their keys only the first");
  v("key_positions", trace.key_positions, "first tokens whose keys were compared");
  v("first_query", trace.first_query, "position of the first query whose attention weights are given");
  v("attention",
    each(trace.attention,
         [&](const analysis::TracedAttention& attention) {
           const bool known = attention.head < x.model.heads.size();
           return TracedAttentionFields{known ? x.model.heads[attention.head] : empty<models::Head>(),
                                        attention};
         }),
    "of every head, in the order of the forward pass");
  v("predictions",
    each(trace.predictions,
         [&](const forward::Prediction& prediction) {
           return PredictionFields{x, prediction};
         }),
    "what follows each token");
  v("final_norm", trace.within.final_norm);
  v("reach_refused", trace.within.next_refused,
    "why it was not decided which tokens are in reach; empty otherwise");
  v("notes", x.model.notes);
}

Json token_trace(const files::Checkpoint& checkpoint, const analysis::TokenTrace& trace,
                 const std::vector<std::string>& names) {
  const models::Model& model = *trace.model;
  std::vector<TracedNormFields> norms;
  for (const analysis::TracedNorm& norm : trace.norms) {
    norms.push_back({model.norms[norm.norm], norm.observer.spec().centers(), norm.axes, norm.tokens});
  }
  return json_of(TokenTraceFields{checkpoint.path().string(), model, trace, names, std::move(norms)});
}
Json describe_token_trace(SchemaMaker& maker) {
  return maker.schema_of(TokenTraceFields{{}, {}, {}, {}, {}});
}

}  // namespace normscope::results
