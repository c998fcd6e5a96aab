#include <normscope/rewrite/witness.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/forward/decoder.hpp>

#include "compare_steps.hpp"

namespace normscope::rewrite {
namespace {

using forward::Decoder;

/// Largest number of tokens of a context.
constexpr std::size_t most_tokens = 8;
/// Contexts of each kind: random tokens, tokens with other embeddings, and the search.
constexpr std::size_t most_contexts = 8;
/// Products of weights and entries of rows that a search takes, about, and what reading a weight costs in
/// their place.
constexpr double budget = 3e11;
constexpr double cost_of_reading = 64.0;
/// Passes that show how far results move, and the factor between these movements and the errors.
constexpr std::uint64_t passes = 3;
constexpr double safety = 8.0;
/// Likewise of changes of weights, which are as large as that of the matrix's row that changes most.
constexpr double safety_of_weights = 3.0;
/// Pairs of logits that a witness keeps.
constexpr std::size_t most_pairs = 200;

/// The position and token with the largest gap between two models' logits.
struct Gap {
  std::vector<std::size_t> tokens{};
  std::size_t position = 0, token = 0;
  double size = -1.0;
  std::vector<double> before{}, after{};  ///< logits of that position, of the tokens that both models have
};

struct Runner {
  const files::Checkpoint& file;
  const models::Model& model;

  /// Logits of all positions, (tokens, vocabulary).
  [[nodiscard]] std::vector<double> logits(const Decoder& decoder,
                                           std::span<const std::size_t> tokens) const {
    const std::vector<double> hidden = decoder.run(tokens);
    std::vector<double> result(tokens.size() * decoder.outputs());
    decoder.logits({hidden.data(), tokens.size(), hidden.size() / tokens.size()},
                   {result.data(), tokens.size(), decoder.outputs()});
    return result;
  }

  /// How far logits of a position move; infinite if one that is finite becomes another.
  [[nodiscard]] double movement(const Gap& gap, std::span<const double> undisturbed,
                                const forward::WeightChanges& changes) const {
    double most = 0.0;
    for (std::uint64_t seed = 1; seed <= passes; ++seed) {
      const Decoder decoder(file, model, 0, {.encoders = true, .disturbance = {seed, changes}});
      const std::vector<double> moved = logits(decoder, gap.tokens);
      const double* const row = moved.data() + gap.position * decoder.outputs();
      for (std::size_t i = 0; i < undisturbed.size(); ++i) {
        if (!std::isfinite(undisturbed[i])) continue;
        const double by = std::abs(row[i] - undisturbed[i]);
        most = std::isfinite(by) ? std::max(most, by) : HUGE_VAL;
      }
    }
    return (changes.empty() ? safety : safety_of_weights) * most;
  }
};

class Search {
 public:
  Search(const Runner& before, const Runner& after, const forward::WeightChanges& changes,
         const Progress& progress)
      : before_(before),
        after_(after),
        old_(before.file, before.model, 0, {.encoders = true}),
        new_(after.file, after.model, 0, {.encoders = true}),
        changes_(changes),
        progress_(progress) {
    tokens_ = std::min(old_.vocabulary(), new_.vocabulary());
    length_ = std::min({most_tokens, old_.positions(), new_.positions()});
    const double cost = (static_cast<double>(length_) + cost_of_reading) *
                        static_cast<double>(before.model.parameters + after.model.parameters + 1);
    // Three kinds, and the passes for the errors.
    const double affordable = std::max(1.0, budget / cost / 3.0 - static_cast<double>(passes));
    contexts_ = affordable >= static_cast<double>(most_contexts) ? most_contexts
                                                                 : static_cast<std::size_t>(affordable);
  }

  WitnessSearch run() {
    Random random(1);
    for (std::size_t i = 0; i < contexts_; ++i) try_context(random_context(random));
    if (!found_witness()) {
      const std::vector<std::size_t> changed = changed_tokens();
      for (std::size_t i = 0; i < contexts_ && !changed.empty(); ++i) {
        std::vector<std::size_t> context(length_);
        for (std::size_t& token : context) token = changed[random.below(changed.size())];
        try_context(context);
      }
      for (std::size_t i = 0; i < contexts_ && !best_.tokens.empty(); ++i) {
        std::vector<std::size_t> context = best_.tokens;
        context[random.below(context.size())] = random.below(tokens_);
        try_context(context);
      }
      (void)found_witness();
    }
    result_.largest_gap = std::max(best_.size, 0.0);
    if (!result_.witness) {
      result_.why_none = fmt::format(
          "no witness among {} contexts of {} tokens: the largest gap between logits is {:.3g}, and rounding "
          "explains {:.3g}",
          result_.contexts, length_, result_.largest_gap, explained_);
    }
    return std::move(result_);
  }

 private:
  std::vector<std::size_t> random_context(Random& random) const {
    std::vector<std::size_t> context(length_);
    for (std::size_t& token : context) token = random.below(tokens_);
    return context;
  }

  /// Tokens whose embeddings differ most.
  std::vector<std::size_t> changed_tokens() {
    std::vector<std::pair<double, std::size_t>> changes;
    for (std::size_t token = 0; token < tokens_; ++token) {
      const std::vector<double> a = old_.embedding(token);
      const std::vector<double> b = new_.embedding(token);
      double sum = 0.0;
      for (std::size_t j = 0; j < std::min(a.size(), b.size()); ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
      if (sum > 0.0) changes.emplace_back(-sum, token);
    }
    std::sort(changes.begin(), changes.end());
    std::vector<std::size_t> tokens;
    for (const auto& [change, token] : changes) {
      if (tokens.size() < most_tokens) tokens.push_back(token);
    }
    return tokens;
  }

  void try_context(const std::vector<std::size_t>& tokens) {
    progress_("contexts", result_.contexts, 3 * contexts_);
    ++result_.contexts;
    const std::vector<double> a = before_.logits(old_, tokens);
    const std::vector<double> b = after_.logits(new_, tokens);
    const std::size_t count = std::min(old_.outputs(), new_.outputs());
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const double* const old_row = a.data() + t * old_.outputs();
      const double* const new_row = b.data() + t * new_.outputs();
      for (std::size_t i = 0; i < count; ++i) {
        // Where one logit is finite, a weight that is not reaches the other.
        const bool is_one_finite = std::isfinite(old_row[i]) != std::isfinite(new_row[i]);
        const double size = is_one_finite ? HUGE_VAL : std::abs(new_row[i] - old_row[i]);
        if (!(size > best_.size)) continue;
        best_ = {tokens, t, i, size, {old_row, old_row + count}, {new_row, new_row + count}};
      }
    }
  }

  /// Whether the largest gap is a witness.
  bool found_witness() {
    if (!(best_.size > 0.0)) return false;
    const std::size_t count = best_.before.size();
    Witness witness{best_.tokens,
                    best_.position,
                    !old_.has_logits(),
                    {best_.token, best_.before[best_.token], best_.after[best_.token]}};
    const bool old_is_finite = std::isfinite(witness.logit.before);
    const bool new_is_finite = std::isfinite(witness.logit.after);
    if (old_is_finite) witness.old_error = before_.movement(best_, best_.before, {});
    if (new_is_finite) witness.new_error = after_.movement(best_, best_.after, {});
    if (!changes_.empty() && old_is_finite) {
      witness.rounding = before_.movement(best_, best_.before, changes_);
    }
    explained_ = witness.old_error + witness.new_error + witness.rounding;
    if (!(best_.size > explained_)) return false;
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto gap = [&](std::size_t i) { return std::abs(best_.after[i] - best_.before[i]); };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return gap(a) > gap(b); });
    order.resize(std::min(count, most_pairs));
    std::sort(order.begin(), order.end());
    for (const std::size_t i : order) witness.logits.push_back({i, best_.before[i], best_.after[i]});
    result_.witness = std::move(witness);
    return true;
  }

  Runner before_, after_;
  Decoder old_, new_;
  const forward::WeightChanges& changes_;
  const Progress& progress_;
  std::size_t tokens_ = 0, length_ = 0, contexts_ = 0;
  double explained_ = 0.0;
  Gap best_{};
  WitnessSearch result_{};
};

}  // namespace

WitnessSearch seek_witness(const files::Checkpoint& old_file, const models::Model& old_model,
                           const files::Checkpoint& new_file, const models::Model& new_model,
                           const forward::WeightChanges& changes, const Progress& progress) {
  try {
    return Search({old_file, old_model}, {new_file, new_model}, changes, progress).run();
  } catch (const Error& error) {
    // Argument: a vocabulary beyond the rows of the token embedding.
    if (error.code() != ErrorCode::Unsupported && error.code() != ErrorCode::Argument) throw;
    return {.why_none = std::string("no witness was sought: ") + error.what()};
  }
}

namespace {

/// Whether two models that differ compute otherwise whatever their weights are.
bool has_structural_reason(const Comparison& result) {
  const auto computes_otherwise = [&](const NormComparison& norm) {
    return norm.old_kind != norm.new_kind || (norm.eps_known && !norm.same_eps()) ||
           (!norm.agrees_itself && norm.gain_change <= result.tolerance &&
            norm.bias_change <= result.tolerance);
  };
  return !result.computations.empty() ||
         std::any_of(result.configuration.begin(), result.configuration.end(),
                     [](const FieldComparison& field) { return field.effect == FieldEffect::different; }) ||
         std::any_of(result.norms.begin(), result.norms.end(), computes_otherwise) ||
         // What the format of a block does not explain was not quantized from OLD.
         (result.tolerates == Tolerance::quantization &&
          std::any_of(result.quantizations.begin(), result.quantizations.end(),
                      [](const Quantization& found) { return !found.explained && found.is_by_rule; })) ||
         std::any_of(result.others.begin(), result.others.end(),
                     [](const OtherComparison& other) { return !other.in_old || !other.in_new; });
}

/// Changes of OLD's weights that rounding explains: of those that differ, by as much as they do, up to the
/// tolerance or what quantization explains. Those that are equal have no roundings.
forward::WeightChanges changes_by_rounding(const models::Model& old_model, const Comparison& result) {
  forward::WeightChanges changes;
  const auto take = [&](const std::string& name, double stored, double change) {
    if (stored != 0.0) changes[name] = std::max(changes[name], std::min(change, result.tolerance));
  };
  const auto take_map = [&](const std::string& old_weight, const std::string& new_weight, double raw,
                            double change) {
    take(old_weight, raw, change);
    if (result.is_quantization(new_weight)) changes[old_weight] = std::max(changes[old_weight], change);
  };
  std::map<std::string, const models::Linear*> maps;
  for (const models::Norm& norm : old_model.norms) {
    for (const auto* list : {&norm.readers, &norm.writers}) {
      for (const models::Linear& map : *list) maps[map.weight.selector()] = &map;
    }
  }
  bool all_are_known = true;
  const auto know = [&](const std::string& selector) {
    all_are_known = all_are_known && maps.contains(selector);
  };
  for (const NormComparison& norm : result.norms) {
    const double change = std::max(norm.gain_change, norm.bias_change);
    take(norm.old_name, change, change);
    for (const ReaderComparison& reader : norm.readers) {
      know(reader.old_weight);
      take_map(reader.old_weight, reader.new_weight, reader.raw, reader.composite);
      const auto at = maps.find(reader.old_weight);
      if (at != maps.end() && at->second->bias)
        take(at->second->bias->selector(), reader.bias, result.tolerance);
    }
  }
  for (const WriterComparison& writer : result.writers) {
    know(writer.old_weight);
    take_map(writer.old_weight, writer.new_weight, writer.raw,
             writer.only_layer_norms ? writer.centered : writer.raw);
    const auto at = maps.find(writer.old_weight);
    // Biases of writers are compared with other tensors.
    if (at != maps.end() && at->second->bias && writer.raw != 0.0) {
      take(at->second->bias->selector(), writer.raw, result.tolerance);
    }
  }
  const auto take_other = [&](const std::string& name, const OtherComparison& other) {
    if (other.change != 0.0) changes[name] = std::max(changes[name], std::min(other.change, other.tolerance));
  };
  for (const OtherComparison& other : result.others) take_other(other.name, other);
  for (const models::Linear& map : old_model.stream_readers) {
    for (const OtherComparison& other : result.others) {
      if (map.bias && other.name == map.weight.selector()) take_other(map.bias->selector(), other);
    }
  }
  // In names of another kind, which matrix of OLD is meant is not known.
  if (!all_are_known && !changes.empty()) changes[""] = result.tolerance;
  return changes;
}

/// Why logits of two models would not tell: one of them has to be assumed.
std::string assumption_of(const files::Checkpoint& old_file, const files::Checkpoint& new_file,
                          const Comparison& result) {
  if (old_file.graph() != nullptr || new_file.graph() != nullptr) return "graphs are not run";
  if (models::has_configuration(old_file) != models::has_configuration(new_file)) {
    return fmt::format("{} has no configuration", models::has_configuration(old_file) ? "NEW" : "OLD");
  }
  for (const NormComparison& norm : result.norms) {
    if (!norm.eps_known && !norm.same_eps()) return "the eps of " + norm.new_name + " is assumed";
  }
  const bool shifts =
      std::any_of(result.findings.begin(), result.findings.end(),
                  [](const ComparisonFinding& finding) { return finding.kind == "shifted_logits"; });
  if (shifts) return "all logits of a position are shifted by the same amount, which is no difference";
  return {};
}

}  // namespace

void decide_by_running(const files::Checkpoint& old_file, const models::Model& old_model,
                       const files::Checkpoint& new_file, const models::Model& new_model, Comparison& result,
                       const Progress& progress) {
  if (result.agreement != Agreement::different && result.agreement != Agreement::undecided) return;
  if (const std::string why = assumption_of(old_file, new_file, result); !why.empty()) {
    result.no_witness = "no witness was sought: " + why;
  } else {
    WitnessSearch search = seek_witness(old_file, old_model, new_file, new_model,
                                        changes_by_rounding(old_model, result), progress);
    result.witness = std::move(search.witness);
    result.no_witness = std::move(search.why_none);
  }
  if (result.witness) result.agreement = Agreement::different;
  if (!result.witness && !has_structural_reason(result)) result.agreement = Agreement::undecided;
}

}  // namespace normscope::rewrite
