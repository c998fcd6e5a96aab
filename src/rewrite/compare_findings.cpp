#include "compare_steps.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include <normscope/core/text.hpp>

namespace normscope::rewrite {
namespace {

using models::Model;

/// The gains of both files, norm by norm.
struct Gains {
  std::vector<double> before;
  std::vector<double> after;
  bool adds_one = false;  ///< the class of either reads w as 1 + w
};

std::vector<double> gain_of(const files::Checkpoint& file, const models::Norm& norm) {
  return gains_of(read_norm(file, norm), norm.width);
}

bool all_are(const std::vector<double>& values, double wanted) {
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == wanted; });
}

std::vector<double> shifted(std::vector<double> values, double by) {
  for (double& value : values) value += by;
  return values;
}

class Findings {
 public:
  Findings(Comparison& comparison, std::vector<Gains> gains)
      : comparison_(comparison), gains_(std::move(gains)) {}

  void add_all() {
    each("missing_normalization",
         "the eps of {} is {:g} in NEW, {:g} in OLD: it divides by a constant, so the norm is gone",
         [](const NormComparison& norm, const Gains&) { return norm.new_eps > 1.0 && norm.old_eps < 1e-2; });
    each("eps", "the eps of {} is {:g} in NEW, {:g} in OLD", [](const NormComparison& norm, const Gains&) {
      return !norm.same_eps() && !(norm.new_eps > 1.0 && norm.old_eps < 1e-2);
    });
    each("kind", "{} is of another kind in NEW",
         [](const NormComparison& norm, const Gains&) { return norm.old_kind != norm.new_kind; });
    add_shifts(1.0, true, "is shifted twice: it is that of OLD plus 1, in NEW's file or by its class");
    add_shifts(1.0, false,
               "is that of OLD plus 1: 1 was added, as for a model that reads w in place of 1 + w");
    add_shifts(-1.0, true,
               "is not shifted: it is that of OLD minus 1, which neither NEW's file nor its class adds");
    add_shifts(-1.0, false,
               "is that of OLD minus 1: 1 was subtracted, as for a model that reads 1 + w in place of w");
    each("zero_gain", "the gain of {} is zero in NEW", [](const NormComparison& norm, const Gains& gains) {
      return different(norm) && all_are(gains.after, 0.0) && !all_are(gains.before, 0.0);
    });
    each("lost_gain", "the gain of {} is 1 in NEW, and its readers are those of OLD: the gain was not folded",
         [](const NormComparison& norm, const Gains& gains) {
           return different(norm) && all_are(gains.after, 1.0) && !all_are(gains.before, 1.0) &&
                  !norm.readers.empty() &&
                  every_reader(norm, [](const ReaderComparison& reader) { return reader.raw == 0.0; });
         });
    each("folded_twice", "the readers of {} have its gain, which it still has: it acts twice",
         [this](const NormComparison& norm, const Gains&) {
           return different(norm) && norm.gain_change <= comparison_.tolerance && !norm.readers.empty() &&
                  every_reader(norm, [this](const ReaderComparison& reader) {
                    return reader.folded_twice <= comparison_.tolerance && reader.raw > comparison_.tolerance;
                  });
         });
    each("lost_bias", "the bias of {} is not that of OLD, and its readers' biases do not make up for it",
         [this](const NormComparison& norm, const Gains&) {
           return different(norm) && norm.bias_change > comparison_.tolerance && !norm.readers.empty() &&
                  every_reader(norm, [this](const ReaderComparison& reader) {
                    return reader.composite <= comparison_.tolerance;
                  });
         });
    add_exchanged();
    add_wrong_readers();
    each("folded", "the gain of {} is in its readers", [](const NormComparison& norm, const Gains& gains) {
      return norm.agreement == Agreement::equivalent && all_are(gains.after, 1.0) &&
             !all_are(gains.before, 1.0);
    });
    add_quantizations();
    add_unexplained();
    add_writers();
    add_configuration();
  }

 private:
  using Test = std::function<bool(const NormComparison&, const Gains&)>;

  static bool different(const NormComparison& norm) { return norm.agreement == Agreement::different; }

  template <typename Predicate>
  static bool every_reader(const NormComparison& norm, const Predicate& is) {
    return std::all_of(norm.readers.begin(), norm.readers.end(), is);
  }

  /// Gains that are those of OLD plus `by`, of classes that add 1 to what they store or of others.
  void add_shifts(double by, bool adds_one, const char* how) {
    const NormComparison* first = nullptr;
    std::size_t count = 0;
    double remainder = 0.0;
    for (std::size_t i = 0; i < comparison_.norms.size(); ++i) {
      const Gains& gains = gains_[i];
      const std::vector<double> expected = shifted(gains.before, by);
      if (gains.adds_one != adds_one || !different(comparison_.norms[i]) ||
          !(relative_change(expected, gains.after) <= comparison_.tolerance)) {
        continue;
      }
      named_.insert(i);
      if (count++ == 0) first = &comparison_.norms[i];
      for (std::size_t j = 0; j < expected.size(); ++j) {
        remainder = std::max(remainder, std::abs(gains.after[j] - expected[j]));
      }
    }
    if (first == nullptr) return;
    comparison_.findings.push_back(
        {"offset",
         fmt::format("the gain of {} {}{}; every entry, to {:.2g}", first->new_name, how,
                     count > 1 ? fmt::format("; so for {} of {} norms", count, comparison_.norms.size())
                               : std::string(),
                     remainder)});
  }

  /// One finding for all norms for which `is` holds; the first is named.
  void each(const char* kind, const char* text, const Test& is) {
    std::size_t count = 0;
    const NormComparison* first = nullptr;
    for (std::size_t i = 0; i < comparison_.norms.size(); ++i) {
      if (!is(comparison_.norms[i], gains_[i])) continue;
      named_.insert(i);
      if (count++ == 0) first = &comparison_.norms[i];
    }
    if (count == 0) return;
    std::string sentence = fmt::format(fmt::runtime(text), first->new_name, first->new_eps, first->old_eps);
    if (count > 1) sentence += fmt::format("; so for {} of {} norms", count, comparison_.norms.size());
    comparison_.findings.push_back({kind, std::move(sentence)});
  }

  void add_exchanged() {
    for (std::size_t i = 0; i < gains_.size(); ++i) {
      if (!different(comparison_.norms[i]) || gains_[i].before == gains_[i].after ||
          all_are(gains_[i].after, 1.0) || all_are(gains_[i].after, 0.0)) {
        continue;
      }
      for (std::size_t other = 0; other < gains_.size(); ++other) {
        if (other == i || gains_[other].before != gains_[i].after) continue;
        named_.insert(i);
        comparison_.findings.push_back(
            {"exchanged_gain",
             fmt::format("the gain of {} in NEW is that of {} in OLD", comparison_.norms[i].new_name,
                         comparison_.norms[other].old_name)});
        break;
      }
    }
  }

  /// Readers that have the weights of another reader of OLD.
  void add_wrong_readers() {
    for (std::size_t i = 0; i < gains_.size(); ++i) {
      for (const ReaderComparison& reader : comparison_.norms[i].readers) {
        if (reader.taken_from.empty()) continue;
        named_.insert(i);
        comparison_.findings.push_back(
            {"wrong_reader",
             fmt::format("{} in NEW, which reads {}, is {} of OLD, which reads {}", reader.new_weight,
                         comparison_.norms[i].new_name, reader.taken_from, reader.taken_from_norm)});
      }
    }
  }

  /// Whether `add_quantizations` says how a matrix differs.
  [[nodiscard]] bool has_quantization(const std::string& new_weight) const {
    return std::any_of(comparison_.quantizations.begin(), comparison_.quantizations.end(),
                       [&](const Quantization& found) { return found.new_weight == new_weight; });
  }

  static std::string matrices(std::size_t count) {
    return fmt::format("{} {}", count, count == 1 ? "matrix" : "matrices");
  }

  static std::string error_of(const Quantization& found) {
    return found.steps ? fmt::format("{:.3g} steps", *found.steps)
                       : std::string("more than a block of one value explains");
  }

  /// One sentence for each format and for what it explains or not; of matrices alike, the worst is named.
  void add_quantizations() {
    for (const bool explained : {false, true}) {
      std::map<std::string, std::vector<const Quantization*>> by_format;
      for (const Quantization& found : comparison_.quantizations) {
        if (found.explained == explained) by_format[found.format].push_back(&found);
      }
      for (const auto& [format, all] : by_format) {
        const Quantization& worst =
            **std::max_element(all.begin(), all.end(), [](const Quantization* a, const Quantization* b) {
              return a->wrong_blocks != b->wrong_blocks ? a->wrong_blocks < b->wrong_blocks
                                                        : a->steps.value_or(0.0) < b->steps.value_or(0.0);
            });
        const std::string place = fmt::format("block {} of row {} of {}", worst.block, worst.row,
                                              worst.new_is_quantized ? worst.new_weight : worst.old_weight);
        if (explained) {
          comparison_.findings.push_back(
              {"quantized",
               fmt::format("{} explains how {} differ{}; the largest error is {}, in {}", format,
                           matrices(all.size()), all.size() == 1 ? "s" : "", error_of(worst), place)});
        } else {
          comparison_.findings.push_back(
              {"wrong_block",
               fmt::format("{} does not explain {}, of which an element is off by {}; so for {} of {} "
                           "blocks of this matrix, and for {} of {} that differ",
                           format, place, error_of(worst), worst.wrong_blocks, worst.blocks, all.size(),
                           matrices(comparison_.quantizations.size()))});
        }
      }
    }
  }

  /// The tensors of norms that differ without a known mistake: the first gain and the matrix that differs
  /// most.
  void add_unexplained() {
    const NormComparison* gain = nullptr;
    const ReaderComparison* worst = nullptr;
    std::size_t gains = 0;
    std::size_t readers = 0;
    const auto change = [](const ReaderComparison& reader) { return std::max(reader.raw, reader.bias); };
    for (std::size_t i = 0; i < comparison_.norms.size(); ++i) {
      const NormComparison& norm = comparison_.norms[i];
      if (!different(norm) || named_.contains(i)) continue;
      if (std::max(norm.gain_change, norm.bias_change) > comparison_.tolerance && gains++ == 0) gain = &norm;
      for (const ReaderComparison& reader : norm.readers) {
        if (!(change(reader) > comparison_.tolerance) || has_quantization(reader.new_weight)) continue;
        ++readers;
        if (worst == nullptr || change(reader) > change(*worst)) worst = &reader;
      }
    }
    const auto and_so = [](std::size_t count, const char* what) {
      return count > 1 ? fmt::format("; so do {} {}", count - 1, what) : std::string();
    };
    if (gain != nullptr) {
      comparison_.findings.push_back(
          {"gain",
           fmt::format("the gain or bias of {} differs: by {:.2g} and {:.2g} relative{}", gain->new_name,
                       gain->gain_change, gain->bias_change, and_so(gains, "others"))});
    }
    if (worst != nullptr) {
      comparison_.findings.push_back(
          {"reader", fmt::format("{} differs: by {:.2g} relative in one row{}", worst->new_weight,
                                 change(*worst), and_so(readers, "other matrices that read a norm"))});
    }
  }

  void add_writers() {
    const double tolerance = comparison_.tolerance;
    std::size_t centered = 0;
    for (const WriterComparison& writer : comparison_.writers) {
      if (writer.raw <= tolerance || has_quantization(writer.new_weight)) continue;
      if (writer.centered > tolerance) {
        comparison_.findings.push_back({"writer", fmt::format("{} writes something else: {:.3g} relative",
                                                              writer.new_weight, writer.centered)});
      } else if (writer.only_layer_norms) {
        ++centered;
      } else {
        comparison_.findings.push_back(
            {"centered_for_rms",
             fmt::format("{} lost its mean, which not only LayerNorms read", writer.new_weight)});
      }
    }
    if (centered > 0) {
      comparison_.findings.push_back(
          {"centered",
           fmt::format("{} to the residual stream differ by their mean alone, which its LayerNorms do "
                       "not see",
                       counted(centered, "writer"))});
    }
    for (const OtherComparison& other : comparison_.others) {
      if (other.change <= other.tolerance) continue;
      const char* what = !other.in_new ? "is missing in NEW" : !other.in_old ? "is in NEW alone" : "differs";
      comparison_.findings.push_back({"tensor", fmt::format("{} {}", other.name, what)});
    }
  }

  void add_configuration() {
    const auto shown = [](const std::string& value) {
      return value.empty() ? "not stated" : value.size() <= 60 ? value : value.substr(0, 60) + "...";
    };
    for (const FieldComparison& field : comparison_.configuration) {
      if (field.effect == FieldEffect::none) continue;
      comparison_.findings.push_back(
          {"configuration",
           fmt::format("{} is {} in NEW, {} in OLD{}", field.field, shown(field.after), shown(field.before),
                       field.effect == FieldEffect::unknown ? ": what it changes is not known" : "")});
    }
    for (const std::string& sentence : comparison_.computations) {
      comparison_.findings.push_back({"computation", sentence});
    }
  }

  Comparison& comparison_;
  std::vector<Gains> gains_;
  std::set<std::size_t> named_{};  ///< norms that a finding explains
};

}  // namespace

bool ComparisonFinding::keeps_function() const {
  constexpr std::string_view kinds[] = {"folded",           "centered",         "rotated",
                                        "shifted_logits",   "quantized",        "permuted_heads",
                                        "permuted_neurons", "permuted_experts", "scaled_neurons",
                                        "mapped_values",    "mapped_keys",      "moved_value_bias"};
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

void add_findings(const files::Checkpoint& old_file, const Model& old_model,
                  const files::Checkpoint& new_file, const Model& new_model, const NormPairs& norms,
                  Comparison& comparison) {
  std::vector<Gains> gains;
  for (const auto& [old_index, new_index] : norms.pairs) {
    const models::Norm& before = old_model.norms[old_index];
    const models::Norm& after = new_model.norms[new_index];
    const bool adds_one = before.gain_offset == 1.0 || after.gain_offset == 1.0 || before.gain_was_shifted ||
                          after.gain_was_shifted;
    gains.push_back({gain_of(old_file, before), gain_of(new_file, after), adds_one});
  }
  Findings(comparison, std::move(gains)).add_all();
}

}  // namespace normscope::rewrite
