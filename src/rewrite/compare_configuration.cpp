#include "compare_steps.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>

#include <normscope/core/text.hpp>

namespace normscope::rewrite {
namespace {

using models::Described;
using models::Head;
using models::Model;

/// Numbers of configurations that were rounded to float32 on the way are equal.
bool equal_numbers(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

std::string text_of(const std::optional<models::Rotary>& rotary) {
  if (!rotary) return "no rotation";
  return fmt::format("{} rotated coordinates{}, {}", rotary->dims,
                     rotary->interleaved ? " next to each other" : "",
                     rotary->frequencies.empty()
                         ? "frequencies that depend on the context"
                         : fmt::format("the slowest by {:.4g} a position", rotary->frequencies.back()));
}

bool same_rotation(const std::optional<models::Rotary>& a, const std::optional<models::Rotary>& b,
                   bool of_one_form) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->dims == b->dims && (!of_one_form || a->interleaved == b->interleaved) &&
         equal_numbers(a->score_factor, b->score_factor) &&
         std::equal(a->frequencies.begin(), a->frequencies.end(), b->frequencies.begin(),
                    b->frequencies.end(), equal_numbers);
}

class Configurations {
 public:
  Configurations(const Model& old_model, const Model& new_model, Comparison& result)
      : old_(old_model), new_(new_model), result_(result) {}

  void compare_descriptions() {
    compare_heads();
    compare_logits();
    compare_streams();
    for (const NormComparison& norm : result_.norms) {
      if (norm.same_eps()) continue;
      (norm.eps_known ? differing_ : unknown_).insert(Described::norms);
    }
    // Where tensors alone are compared, no norm is.
    if (result_.norms.empty() && !old_.norms.empty()) unknown_.insert(Described::norms);
    if (old_.not_modelled != new_.not_modelled) {
      leave("what acts anywhere", old_.not_modelled, new_.not_modelled);
    }
  }

  [[nodiscard]] FieldEffect effect_of(const models::ChangedField& change) const {
    if (change.described == Described::nowhere) return FieldEffect::unknown;
    return differing_.contains(change.described) ? FieldEffect::different
           : unknown_.contains(change.described) ? FieldEffect::unknown
                                                 : FieldEffect::none;
  }

 private:
  static bool has_router(const Model& model) {
    return std::any_of(model.norms.begin(), model.norms.end(), [](const models::Norm& norm) {
      return std::any_of(norm.readers.begin(), norm.readers.end(),
                         [](const models::Linear& reader) { return reader.role == "router"; });
    });
  }

  void differ(Described where, std::string sentence) {
    differing_.insert(where);
    result_.computations.push_back(std::move(sentence));
  }

  void leave(std::string_view what, const std::string& before, const std::string& after) {
    const auto named = [](const std::string& text) { return text.empty() ? std::string("nothing") : text; };
    result_.not_compared.push_back(
        fmt::format("{}: not modelled in OLD is {}, in NEW {}", what, named(before), named(after)));
  }

  /// One sentence for all heads for which `text` differs; the first is named. What is not modelled of one
  /// head alone says nothing about it.
  void each_head(const char* what, const std::function<bool(const Head&, const Head&)>& same,
                 const std::function<std::string(const Head&)>& text) {
    std::size_t count = 0;
    std::string sentence;
    for (std::size_t i = 0; i < old_.heads.size(); ++i) {
      if (old_.heads[i].not_modelled != new_.heads[i].not_modelled) continue;
      if (same(old_.heads[i], new_.heads[i]) || count++ != 0) continue;
      sentence = fmt::format("the {} of {} is {} in NEW, {} in OLD", what, new_.heads[i].place(),
                             text(new_.heads[i]), text(old_.heads[i]));
    }
    if (count == 0) return;
    if (count > 1) sentence += fmt::format("; so for {} of {} heads", count, old_.heads.size());
    differ(Described::heads, std::move(sentence));
  }

  void compare_heads() {
    if (old_.heads.empty() != new_.heads.empty()) {
      result_.not_compared.push_back(
          fmt::format("attention: the heads of {} are not known", old_.heads.empty() ? "OLD" : "NEW"));
      return;
    }
    if (old_.heads.size() != new_.heads.size()) {
      return differ(Described::heads, fmt::format("there are {} heads in NEW, {} in OLD", new_.heads.size(),
                                                  old_.heads.size()));
    }
    const auto number = [](double Head::*member) {
      return [member](const Head& head) { return fmt::format("{:g}", head.*member); };
    };
    const auto equal = [](double Head::*member) {
      return [member](const Head& a, const Head& b) { return equal_numbers(a.*member, b.*member); };
    };
    each_head(
        "width", [](const Head& a, const Head& b) { return a.head_dim == b.head_dim; },
        [](const Head& head) { return fmt::format("{}", head.head_dim); });
    each_head(
        "key-value head", [](const Head& a, const Head& b) { return a.key_value_head == b.key_value_head; },
        [](const Head& head) { return fmt::format("{}", head.key_value_head); });
    each_head("scale of scores", equal(&Head::scale), number(&Head::scale));
    each_head("clamp of queries, keys and values", equal(&Head::clip), number(&Head::clip));
    each_head(
        "slope of biases by position", [](const Head& a, const Head& b) { return a.alibi == b.alibi; },
        [](const Head& head) {
          return head.alibi ? fmt::format("{:g}", head.alibi->slope) : std::string("none");
        });
    each_head(
        "sink", [](const Head& a, const Head& b) { return a.sink.has_value() == b.sink.has_value(); },
        [](const Head& head) { return std::string(head.sink ? "there" : "missing"); });
    each_head("cap of scores", equal(&Head::soft_cap), number(&Head::soft_cap));
    each_head(
        "window", [](const Head& a, const Head& b) { return a.window == b.window; },
        [](const Head& head) {
          return head.window ? fmt::format("{}", *head.window) : std::string("unbounded");
        });
    const bool of_one_form = old_.architecture == new_.architecture;
    each_head(
        "rotary embedding",
        [&](const Head& a, const Head& b) { return same_rotation(a.rotary, b.rotary, of_one_form); },
        [](const Head& head) { return text_of(head.rotary); });
    // Then the description does not contain what the fields of heads or their rotary embedding say.
    const auto depends = [](const Head& head) {
      return !head.not_modelled.empty() || (head.rotary && head.rotary->frequencies.empty());
    };
    if (std::any_of(old_.heads.begin(), old_.heads.end(), depends) ||
        std::any_of(new_.heads.begin(), new_.heads.end(), depends)) {
      unknown_.insert(Described::heads);
    }
    for (std::size_t i = 0; i < old_.heads.size(); ++i) {
      if (old_.heads[i].not_modelled == new_.heads[i].not_modelled) continue;
      return leave("the scores of " + old_.heads[i].place(), old_.heads[i].not_modelled,
                   new_.heads[i].not_modelled);
    }
  }

  void compare_logits() {
    if (!old_.vocabulary || !new_.vocabulary) {
      if (old_.vocabulary.has_value() != new_.vocabulary.has_value()) {
        result_.not_compared.push_back(
            fmt::format("logits: {} has none that are known", old_.vocabulary ? "NEW" : "OLD"));
      }
      return;
    }
    const models::Vocabulary& before = *old_.vocabulary;
    const models::Vocabulary& after = *new_.vocabulary;
    if (!equal_numbers(before.logit_scale, after.logit_scale)) {
      differ(Described::logits, fmt::format("logits are multiplied by {:g} in NEW, by {:g} in OLD",
                                            after.logit_scale, before.logit_scale));
    }
    if (!equal_numbers(before.soft_cap, after.soft_cap)) {
      differ(Described::logits, fmt::format("the cap of logits is {:g} in NEW, {:g} in OLD (0: none)",
                                            after.soft_cap, before.soft_cap));
    }
    if (before.not_modelled != after.not_modelled) leave("logits", before.not_modelled, after.not_modelled);
  }

  void compare_streams() {
    if (!old_.decoder || !new_.decoder) return;
    const models::Decoder& before = *old_.decoder;
    const models::Decoder& after = *new_.decoder;
    const bool gates_alike =
        before.clamped_gate.has_value() == after.clamped_gate.has_value() &&
        (!before.clamped_gate || equal_numbers(before.clamped_gate->alpha, after.clamped_gate->alpha));
    if (gates_alike && before.clamped_gate &&
        !equal_numbers(before.clamped_gate->limit, after.clamped_gate->limit)) {
      // No gate or input may come near either limit.
      unknown_.insert(Described::stream);
      result_.not_compared.push_back(
          fmt::format("the limit of clamped gates, which is {:g} in NEW, {:g} in OLD",
                      after.clamped_gate->limit, before.clamped_gate->limit));
    }
    if (!gates_alike) {
      differ(Described::stream, "the clamped gates of MLPs have other numbers in NEW");
    } else if (before.activation != after.activation && before.activation && after.activation) {
      differ(Described::stream, "the activation of MLPs is another one in NEW");
    } else if (before.activation != after.activation) {
      result_.not_compared.push_back(
          fmt::format("the activation of MLPs, which {} does not state", before.activation ? "NEW" : "OLD"));
    }
    compare_routing(before.routing, after.routing);
    // Tables that are stored as they are used are compared so.
    const bool same_tables =
        has_other_tables(old_, new_) || (equal_numbers(before.embedding_scale, after.embedding_scale) &&
                                         before.first_position == after.first_position);
    if (!same_tables || !equal_numbers(before.branch_scale, after.branch_scale)) {
      differ(Described::stream,
             fmt::format(
                 "the token embedding is multiplied by {:g}, branches by {:g} and positions begin at {} in "
                 "NEW; {:g}, {:g} and {} in OLD",
                 after.embedding_scale, after.branch_scale, after.first_position, before.embedding_scale,
                 before.branch_scale, before.first_position));
    }
    if (before.not_modelled != after.not_modelled) {
      leave("the stream", before.not_modelled, after.not_modelled);
    }
  }

  void compare_routing(const std::optional<models::Routing>& before,
                       const std::optional<models::Routing>& after) {
    if (!before || !after) {
      const bool both_lack = before.has_value() == after.has_value();
      if (both_lack && !has_router(old_)) return;
      unknown_.insert(Described::stream);
      // The fields of one form say what differs.
      if (both_lack && old_.architecture == new_.architecture) return;
      result_.not_compared.push_back(
          fmt::format("how experts are chosen, which {} does not state", before ? "NEW" : "OLD"));
      return;
    }
    if (before->used == after->used && before->normalized == after->normalized &&
        before->sigmoid == after->sigmoid && equal_numbers(before->scale, after->scale)) {
      return;
    }
    const auto text = [](const models::Routing& routing) {
      return fmt::format("{} by {}{}{}", counted(routing.used, "expert"),
                         routing.sigmoid ? "sigmoids" : "a softmax",
                         routing.normalized ? ", whose weights add up to 1" : "",
                         routing.scale == 1.0 ? "" : fmt::format(", times {:g}", routing.scale));
    };
    differ(Described::stream, fmt::format("a token uses {} in NEW, {} in OLD", text(*after), text(*before)));
  }

  const Model& old_;
  const Model& new_;
  Comparison& result_;
  std::set<Described> differing_{};
  std::set<Described> unknown_{};  ///< parts of which one description is an assumption
};

}  // namespace

const char* to_string(FieldEffect effect) {
  switch (effect) {
    case FieldEffect::none: return "none";
    case FieldEffect::different: return "different";
    case FieldEffect::unknown: return "unknown";
  }
  return "";
}

std::string other_rotary_table(const files::Checkpoint& file, const Model& model) {
  for (const std::string& name : model.buffers) {
    const bool is_sine = name.ends_with(".rotary_sin");
    if (!is_sine && !name.ends_with(".rotary_cos")) continue;
    const files::Tensor& table = *file.find(name);
    const models::Rotary* const rotary =
        model.heads.empty() || !model.heads.front().rotary ? nullptr : &*model.heads.front().rotary;
    if (rotary == nullptr || rotary->frequencies.empty() || table.shape.size() != 2 ||
        table.shape[1] != rotary->dims || !table.is_decodable()) {
      return name;
    }
    const std::vector<double> values = read(table);
    for (std::size_t at = 0; at < values.size(); ++at) {
      const std::size_t j = at % rotary->dims;
      const double position = static_cast<double>(at / rotary->dims);
      const std::size_t pair = rotary->interleaved ? j / 2 : j % rotary->frequencies.size();
      const double angle = position * rotary->frequencies[pair];
      // Angles of 32 bits.
      const double expected = is_sine ? std::sin(angle) : std::cos(angle);
      if (!(std::abs(values[at] - expected) <= 0x1p-21 * (1.0 + angle))) return name;
    }
  }
  return {};
}

Model with_configuration_of(Model model, const Model& other) {
  model.not_modelled = other.not_modelled;
  for (std::size_t n = 0; n < std::min(model.norms.size(), other.norms.size()); ++n) {
    model.norms[n].kind = other.norms[n].kind;
    model.norms[n].eps = other.norms[n].eps;
    model.norms[n].eps_source = other.norms[n].eps_source;
  }
  for (std::size_t h = 0; h < std::min(model.heads.size(), other.heads.size()); ++h) {
    Head& head = model.heads[h];
    const Head& wanted = other.heads[h];
    head.scale = wanted.scale;
    head.rotary = wanted.rotary;
    head.soft_cap = wanted.soft_cap;
    head.clip = wanted.clip;
    head.alibi = wanted.alibi;
    head.window = wanted.window;
    head.not_modelled = wanted.not_modelled;
  }
  if (model.vocabulary && other.vocabulary) {
    model.vocabulary->logit_scale = other.vocabulary->logit_scale;
    model.vocabulary->soft_cap = other.vocabulary->soft_cap;
    model.vocabulary->not_modelled = other.vocabulary->not_modelled;
  }
  model.decoder = other.decoder;
  return model;
}

void compare_configurations(const files::Checkpoint& old_file, const Model& old_model,
                            const files::Checkpoint& new_file, const Model& new_model, Comparison& result) {
  Configurations configurations(old_model, new_model, result);
  configurations.compare_descriptions();
  const bool old_states = models::has_configuration(old_file);
  if (old_states != models::has_configuration(new_file)) {
    result.not_compared.push_back(
        old_model.architecture != new_model.architecture
            ? fmt::format("the configuration, which {0} does not have: kinds and eps of its norms, scores, "
                          "positions and activation are taken to be those of {1}; a config.json beside {0} "
                          "states them",
                          old_states ? "NEW" : "OLD", old_states ? "OLD" : "NEW")
            : fmt::format("the configuration, which {} does not have", old_states ? "NEW" : "OLD"));
    // Without a configuration, published defaults stand for what it would say.
    for (std::string& sentence : result.computations) {
      result.not_compared.push_back(std::move(sentence) + ", as far as assumptions tell");
    }
    result.computations.clear();
    return;
  }
  for (const models::ChangedField& change :
       models::changed_fields(old_file, old_model, new_file, new_model)) {
    result.configuration.push_back(
        {change.field, change.before, change.after, configurations.effect_of(change)});
  }
}

}  // namespace normscope::rewrite
