#include <normscope/results/documents.hpp>

#include <cmath>
#include <utility>

#include <normscope/analysis/share_range.hpp>

#include "shared.hpp"

namespace normscope::results {
namespace {

using analysis::Attribution;
using analysis::ComponentEffect;

struct TokenFields {
  std::size_t token = 0;
  const std::vector<std::string>& names = empty<std::vector<std::string>>();
};

}  // namespace

template <class V>
void fields(V& v, const TokenFields& x) {
  v.define("token");
  v("token", x.token);
  v("name", name_or_null(x.names, x.token), "as text; null if no file names it");
}

template <class V>
void fields(V& v, const ComponentEffect& x) {
  v.define("component", "an addend of the residual stream at the position that is read");
  v("name", x.name,
    "embedding, position, LAYER.HEAD, LAYER.mlp, LAYER.attention_bias, LAYER.mlp_bias; row K of a file");
  v("after",
    nullable(x.component && x.component->after != nullptr,
             x.component && x.component->after != nullptr ? x.component->after->name : empty<std::string>()),
    "the norm of its branch's output, which it goes through before it is added; null without one. It is then "
    "its part of that norm's output, with that norm's divisor kept; rerun removes it before that norm");
  v("share", x.share, "its part of the reading, exact at this input: they add up to value - constant");
  v("shares", each(x.shares, [](double share) { return finite_or_null(share); }),
    "its share of the reading at each position up to the one that is read; none for rows of a file");
  v("frozen", x.effect.frozen, "change of the reading if it is removed and the norm's divisor is kept");
  v("price", x.effect.price, "what that leaves out, as the norm divides what remains by another number");
  v("exact", x.effect.exact, "change of the reading if it is removed before the final norm: frozen + price");
  v("gradient", x.effect.gradient, "first-order estimate of exact, as attribution patching makes it");
  v("remainder", finite_or_null(x.effect.remainder),
    "proved bound of |exact - gradient| by the largest second derivative on the way; null if there is none");
  v("rules", object([&x](auto& rule) {
      for (std::size_t i = 0; i < analysis::rule_count; ++i) {
        rule(analysis::rules[i].name, x.credits[i], analysis::rules[i].about);
      }
    }),
    "what rules in use credit it with, of value - constant; none is the change of a removal");
  v("cosine", x.effect.cosine,
    "between what the norm divides with and without it: negative if it turns over");
  v("rounding", finite_or_null(x.effect.rounding),
    "proved bound of the rounding errors of frozen, price and exact; null if there is none");
  v("rerun", x.rerun,
    "change of the reading if it is removed at every position and the rest of the model runs again: the "
    "total "
    "effect; null if that was not run or is beyond the budget");
  v("paths", x.paths,
    "that change with the weights of attention, the divisors of all norms and the outputs of MLPs kept: the "
    "sum over all paths through values of heads; null without rerun, and for norms without one divisor");
  v("anywhere",
    nullable(x.anywhere,
             [](const analysis::ShareRange& range) {
               return object([ends_of = range.interval](auto& ends) {
                 ends("least", ends_of.lower);
                 ends("most", ends_of.upper);
               });
             }),
    "proved bounds of its share in every context whose final norm divides by `divisor` or more; null where "
    "they were not asked for or are not known");
}

template <class V>
void fields(V& v, const analysis::Relaxation& x) {
  v.define("relaxation",
           "the tangent of f(z) = |u|² + 2gᵀz + diagonalᵀz + zᵀ(G − diag(diagonal))z at a point");
  v("diagonal", each(x.diagonal, [](double value) { return not_negative(value); }));
  v("point", each(x.point, [](double value) { return fraction(value); }));
}

namespace {

/// A set of components by their names.
struct SetFields {
  const Attribution& of = empty<Attribution>();
  const analysis::AttainedSet& set = empty<analysis::AttainedSet>();
};

struct BoundFields {
  const Attribution& of = empty<Attribution>();
  const analysis::SubsetBound& bound = empty<analysis::SubsetBound>();
  bool with_proof = false;
};

struct CircuitFields {
  const Attribution& of = empty<Attribution>();
  const analysis::Circuit& circuit = empty<analysis::Circuit>();
};

/// The name of a component, by its index.
struct NameFields {
  const Attribution& of;
  std::size_t component;

  [[nodiscard]] Json json() const { return of.components[component].name; }
  [[nodiscard]] static Json schema(SchemaMaker& /*maker*/) { return {{"type", "string"}}; }
};

/// A map of a component, or none.
struct MapFields {
  const models::Linear* map = nullptr;
};

/// What the bounds of a component's share in all contexts were computed from.
struct ShareFields {
  const ComponentEffect& of;
  const models::Model& model;
};

struct ProofFields {
  const Attribution& of = empty<Attribution>();
  const models::Model& model = empty<models::Model>();
};

}  // namespace

template <class V>
void fields(V& v, const SetFields& x) {
  v.define("attained");
  v("components", each(x.set.removed, [&x](std::size_t k) { return NameFields{x.of, k}; }));
  v("value", finite_or_null(x.set.value), "null where nothing is left to divide");
}

template <class V>
void fields(V& v, const BoundFields& x) {
  const analysis::SubsetBound& bound = x.bound;
  v.define("bound", "over all sets of at most `removed` components");
  v("removed", positive(bound.removed));
  v("proof", one_of<"every_set", "relaxation">(bound.proof),
    "each set was tried, or excluded by a bound of the sets that contain a part of it; or a convex and a "
    "concave "
    "function bound all");
  v("least", not_negative(bound.least),
    "proved bounds of what is left of any logit behind the norm, less its constant, over what freezing the "
    "divisor predicts");
  v("most", finite_or_null(bound.most), "null where there is none");
  v("attained_least", SetFields{x.of, bound.attained_least});
  v("attained_most", SetFields{x.of, bound.attained_most});
  v("least_price", finite_or_null(bound.least_price),
    "proved bounds of the price of freezing in the reading");
  v("most_price", finite_or_null(bound.most_price));
  v("attained_least_price", SetFields{x.of, bound.attained_least_price});
  v("attained_most_price", SetFields{x.of, bound.attained_most_price});
  v.maybe(x.with_proof && bound.below, "below", or_empty(bound.below), "proves most");
  v.maybe(x.with_proof && bound.above, "above", or_empty(bound.above), "proves least");
}

template <class V>
void fields(V& v, const CircuitFields& x) {
  const analysis::Effect& effect = x.circuit.effect;
  v.define("circuit", "all other components are replaced together by their means over the positions");
  v("kept", each(x.circuit.kept, [&x](std::size_t k) { return NameFields{x.of, k}; }));
  v("frozen", x.of.value + effect.frozen, "the reading that is predicted with the divisor kept");
  v("gradient", x.of.value + effect.gradient, "the reading that the gradient predicts");
  v("exact", x.of.value + effect.exact, "the reading with the others replaced before the final norm");
  v("rounding", finite_or_null(effect.rounding), "as for a component");
  v("rerun", nullable(x.circuit.rerun, [&x](double change) { return x.of.value + change; }),
    "the reading with the others replaced at every position and the model run again; null if it was not run");
}

template <class V>
void fields(V& v, const MapFields& x) {
  const models::Linear& map = x.map != nullptr ? *x.map : empty<models::Linear>();
  v.define("share_map");
  v("weight", map.weight.selector());
  map_source(v, map);
}

template <class V>
void fields(V& v, const analysis::QuadraticProof& x) {
  v.define("quadratic_bound",
           "of an end of an MLP's range: quadratic functions of what each unit reads of the norm's output");
  v("slopes", x.slopes);
  v("curvatures", x.curvatures);
  v("balances", x.balances, "of gated units; none without gates");
  v("multiplier", not_negative(x.multiplier), "of the length of what the norm puts out, before its gain");
}

template <class V>
void fields(V& v, const ShareFields& x) {
  using analysis::ShareSource;
  const forward::Component& of = or_empty(x.of.component);
  const models::Decoder& decoder = or_empty(x.model.decoder);
  const models::Linear* const table = analysis::table_of(x.model, of);
  const ShareSource kind = analysis::share_source(of);
  const bool reads = kind == ShareSource::head || kind == ShareSource::mlp;
  const models::Norm* const norm = reads ? of.reads : kind == ShareSource::norm ? of.after : nullptr;
  const auto map = [](const models::Linear* linear) {
    return nullable(linear != nullptr, MapFields{linear});
  };
  std::string rows = table != nullptr ? table->weight.selector() : "";
  if (kind == ShareSource::constant) {
    const auto& stored = of.after != nullptr ? of.after->bias : of.out->bias;
    rows = or_empty(stored).selector();
  }
  v.define("share_source", "what the bounds of a component's share in all contexts were computed from");
  v("of", one_of<"none", "rows", "constant", "head", "mlp", "norm">(kind),
    "it adds a row of a table, the same always, an average of values behind a norm, what an MLP puts out, or "
    "what the norm of its branch does");
  v("scale",
    kind == ShareSource::rows ? of.kind == forward::Component::Kind::embedding ? decoder.embedding_scale : 1.0
                              : decoder.branch_scale,
    "factor of what it adds");
  v("rows", nullable(!rows.empty(), std::move(rows)), "tensor of the rows or the constant");
  v("norm", nullable(norm != nullptr, object([norm](auto& source) {
                       source.define("share_norm");
                       norm_source(source, norm != nullptr ? *norm : empty<models::Norm>());
                     })),
    "that is read, or that of the branch");
  v("in", map(reads ? of.in : nullptr), "values of a head; the inputs of an MLP");
  v("gate", map(reads ? of.gate : nullptr));
  v("out", map(reads ? of.out : nullptr));
  v("first_input", of.first_input, "of the output map, that it takes");
  v("activation",
    nullable(kind == ShareSource::mlp && decoder.activation,
             one_of<"gelu", "gelu_tanh", "silu", "relu", "squared_relu">(or_empty(decoder.activation))));
  const analysis::ShareRange& range = or_empty(x.of.anywhere);
  v("below", nullable(range.below.has_value(), or_empty(range.below)),
    "proves the least of an MLP; null where the extremes of each unit do");
  v("above", nullable(range.above.has_value(), or_empty(range.above)), "proves its most");
}

template <class V>
void fields(V& v, const ProofFields& x) {
  const Attribution& of = x.of;
  const auto& reading = of.reading;
  v.define("proof", "what the bounds were computed from; `normscope verify` computes them again");
  const models::Norm& norm = of.norm < x.model.norms.size() ? x.model.norms[of.norm] : empty<models::Norm>();
  const models::Vocabulary& vocabulary = or_empty(x.model.vocabulary);
  const models::Linear& map = or_empty(vocabulary.unembedding);
  v("source", object([&](auto& source) {
      source("kind", norm.kind);
      source("gain", slice_or_null(norm.gain), about_stored_gain);
      source("gain_offset", norm.gain_offset, about_gain_offset);
      source("bias", slice_or_null(norm.bias), about_stored_bias);
      source("unembedding", map.weight.selector());
      source("layout", layout_text(map.layout), about_layout);
      source("unembedding_bias", slice_or_null(map.bias), "tensor; null for zeros");
      source("logit_scale", vocabulary.logit_scale, "factor of logits");
    }),
    "what the direction was computed from");
  v("squared_radius", above_zero(reading ? reading->squared_radius() : 1.0),
    "the squared length is divided by this before eps is added");
  v("eps", not_negative(reading ? reading->eps() : 0.0));
  v("row", reading ? reading->row() : empty<std::vector<double>>(), "what the norm divides: u");
  v("direction", reading ? reading->direction() : empty<std::vector<double>>(),
    "v, so that the reading is v·u over the divisor, and the constant");
  std::vector<std::vector<double>> changes;
  const std::size_t width = reading ? reading->row().size() : 1;
  for (std::size_t first = 0; first < of.changes.size(); first += width) {
    changes.push_back(reading->centered({of.changes.data() + first, width}));
  }
  v("changes", changes, "what removing each component adds to the row");
  v("shares",
    each(of.components,
         [&x](const ComponentEffect& component) {
           return nullable(component.anywhere.has_value(), ShareFields{component, x.model});
         }),
    "what proves `anywhere` of each component; null without it");
}

namespace {

struct AttributionFields {
  std::string path;
  const verify::Inputs& inputs = empty<verify::Inputs>();
  const Attribution& x = empty<Attribution>();
  const models::Model& model = empty<models::Model>();
  const std::vector<std::string>& names = empty<std::vector<std::string>>();
  bool with_proofs = false;

  [[nodiscard]] const std::string& norm_name(std::size_t index) const {
    return index < model.norms.size() ? model.norms[index].name : empty<std::string>();
  }
};

}  // namespace

template <class V>
void fields(V& v, const AttributionFields& of) {
  const Attribution& x = of.x;
  begin(v, "attribute");
  v("path", of.path);
  v("inputs", InputsFields{of.inputs}, "what the command line named");
  v("architecture", of.model.title);
  v("tokens", each(x.tokens, [&of](std::size_t token) { return TokenFields{token, of.names}; }));
  v("at", x.at, "position whose next token is predicted");
  v("target", TokenFields{x.target, of.names});
  v("against",
    nullable(x.against,
             [&of](std::size_t token) {
               return TokenFields{token, of.names};
             }),
    "the reading is the logit of the target less the logit of this token; null if it is the logit itself");
  v("removal", one_of<"zero", "mean", "given">(x.removal),
    "what replaces a removed component: nothing, its mean over the positions up to the one that is read, or "
    "rows of a file");
  v("norm", of.norm_name(x.norm), "the final norm");
  v("divisor", above_zero(x.divisor), "what it divides this row by");
  v("value", x.value, "the reading, before a soft cap of the model");
  v("constant", x.constant, "its part that comes from the norm's bias and the unembedding's");
  v("soft_cap",
    nullable(of.model.vocabulary && of.model.vocabulary->soft_cap > 0.0,
             of.model.vocabulary ? of.model.vocabulary->soft_cap : 0.0),
    "C of C tanh(logit/C), which the model applies after the reading; null without one");
  v("miss", not_negative(x.miss),
    "by how much the components miss the stream: the largest difference of a feature over the largest sum of "
    "sizes");
  v("components", x.components, "in the order in which they are added");
  v("bounds",
    each(x.bounds,
         [&of](const analysis::SubsetBound& bound) {
           return BoundFields{of.x, bound, of.with_proofs};
         }),
    "of the price of freezing, for every set of removed components; one for each number of them");
  v("circuit",
    nullable(x.circuit,
             [&of](const analysis::Circuit& circuit) {
               return CircuitFields{of.x, circuit};
             }),
    "null unless components to keep were named");
  v.maybe(of.with_proofs, "proof", ProofFields{x, of.model});
  v("check",
    nullable(
        x.check,
        [](const analysis::RunCheck& check) {
          return object([&check](auto& run) {
            run.define("run_check", "what runs of the model show");
            run("null_patch", check.null_patch,
                "change of the reading if each component is replaced by itself and the model runs again: 0");
            run("differing", check.differing,
                "components that a second run of the same text computes with other bits: 0");
            run("freeze",
                nullable(check.freeze,
                         [](const analysis::RunCheck::Freeze& freeze) {
                           return object([&freeze](auto& held) {
                             held("by_paths", freeze.by_paths, "by the derivatives that give `paths`");
                             held("by_run", freeze.by_run, "by a run of the model with all that kept");
                           });
                         }),
                "change of the reading if random rows are added to every component at every position, with "
                "the "
                "weights of attention, the divisors of norms and the outputs of MLPs kept; null without "
                "paths");
          });
        }),
    "null where the model was not run again");
  v("folds",
    each(x.folds,
         [&of](const analysis::NearFold& fold) {
           return object([fold, &of](auto& near) {
             near.define("near_fold");
             near("norm", of.norm_name(fold.norm));
             near("position", fold.position);
             near("radius", fraction(fold.radius),
                  "length of the norm's output before gain and bias over its largest");
           });
         }),
    "rows near the origin before a norm, where small changes turn its output over");
  v("notes", of.model.notes);
}

Json attribution(const verify::Inputs& inputs, const Attribution& attributed,
                 const std::vector<std::string>& names, bool with_proofs) {
  return json_of(AttributionFields{inputs.arguments.front().name, inputs, attributed, *attributed.model,
                                   names, with_proofs});
}
Json describe_attribute(SchemaMaker& maker) { return maker.schema_of(AttributionFields{}); }

}  // namespace normscope::results
