#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <normscope/files/source.hpp>

#include "planning.hpp"

namespace normscope::rewrite {
namespace {

using files::Checkpoint;
using models::Linear;
using models::Model;
using models::Norm;
using models::Placement;

constexpr StreamWords centring{"which its gain takes off the centre", "writes to"};

class StreamPlanner : Planner {
 public:
  using Planner::Planner;

  StreamPlan decide(const std::string& stack) {
    StreamPlan result;
    result.stack = stack;
    const auto [norms, writers] = stream_of(stack);
    result.norms = norms;
    for (const Linear& writer : writers) result.writers.push_back(writer.weight.selector());
    if (plan_.centered_before) {
      result.reason = "centred before, as the file's metadata say";
      return result;
    }
    result.reason = why_not(result, writers);
    if (result.reason.empty()) {
      result.centered = true;
      for (const Linear& writer : writers) add_edits(writer, result.norms.back());
    }
    return result;
  }

 private:
  [[nodiscard]] std::string why_not(const StreamPlan& stream, const std::vector<Linear>& writers) const {
    for (const std::size_t index : stream.norms) {
      if (std::string why = why_not_norm(model_.norms[index]); !why.empty()) return why;
    }
    if (model_.norms[stream.norms.back()].role != "final") {
      return "its last reader is not a final norm";
    }
    for (const Linear& writer : writers) {
      if (std::string why = why_not_writer(writer); !why.empty()) return why;
      if (model_.vocabulary && model_.vocabulary->tied && !plan_.untied && writer.role == "token embedding") {
        return fmt::format("{} is the head too; {}", files::quote(writer.weight.selector()),
                           advice_on_tie(checkpoint_, model_, writer.weight.tensor));
      }
    }
    if (!model_.centres_exactly) {
      return fmt::format("all that writes to the stream of {} is not known for certain", model_.title);
    }
    return {};
  }

  [[nodiscard]] static std::string why_not_norm(const Norm& norm) {
    if (!norm.not_modelled.empty()) return "not modelled: " + norm.not_modelled;
    if (norm.kind == NormKind::rms) {
      return fmt::format("{} is an RMSNorm, whose output depends on the mean", norm.name);
    }
    if (norm.kind != NormKind::layer || norm.groups != 1) return fmt::format("{} is no LayerNorm", norm.name);
    return why_not_passed(norm, centring);
  }

  void add_edits(const Linear& writer, std::size_t reader) {
    plan_.edits.push_back({Change::center_outputs, writer.weight.tensor, writer.weight, writer, reader});
    if (!writer.bias) return;
    plan_.edits.push_back({Change::center, writer.bias->tensor, *writer.bias, writer, reader});
  }
};

}  // namespace

void plan_streams(const Checkpoint& checkpoint, const Model& model, const Uses& uses, Plan& plan) {
  if (!plan.options.center) return;
  StreamPlanner planner(checkpoint, model, uses, plan);
  for (const std::string& stack : stacks_of(model, reads_stream))
    plan.streams.push_back(planner.decide(stack));
}

namespace {

/// A feature of a norm's output that is not always 0.
struct Feature {
  std::size_t index;
  double largest;
  double typical;  ///< root mean square over inputs in all directions
};

/// The part of the largest feature's range that the median feature takes, once each is divided by its scale.
double evenness(const std::vector<Feature>& features, const std::vector<double>& scales) {
  double largest = 0.0;
  std::vector<double> typical;
  for (const Feature& feature : features) {
    largest = std::max(largest, feature.largest / scales[feature.index]);
    typical.push_back(feature.typical / scales[feature.index]);
  }
  const auto middle = typical.begin() + static_cast<std::ptrdiff_t>(typical.size() / 2);
  std::nth_element(typical.begin(), middle, typical.end());
  return *middle / largest;
}

/// Powers of two that let one int8 scale for all features serve the median one best: s_j = 2^k, k the integer
/// nearest to log2(largest |y_j|) less the mean of these less t, for the best of 64 offsets t from -1/2 to
/// 1/2. All are 1 where none of these is better than that; s_j is 1 if y_j is always 0.
std::vector<double> even_scales(const NormSpec& spec) {
  constexpr std::size_t offsets = 64;
  const double length =
      spec.centers() ? std::sqrt(static_cast<double>(spec.block_width()) - 1.0) : spec.radius();
  std::vector<Feature> features;
  for (std::size_t j = 0; j < spec.width; ++j) {
    const double gain = std::abs(spec.gain_at(j));
    const double bias = std::abs(spec.bias_at(j));
    if (gain * length + bias > 0.0) features.push_back({j, gain * length + bias, std::hypot(gain, bias)});
  }
  std::vector<double> best(spec.width, 1.0);
  if (features.empty()) return best;
  double mean = 0.0;
  for (const Feature& feature : features) {
    mean += std::log2(feature.largest) / static_cast<double>(features.size());
  }
  double most = evenness(features, best);
  std::vector<double> scales(spec.width, 1.0);
  for (std::size_t i = 0; i < offsets; ++i) {
    const double offset = static_cast<double>(i) / offsets - 0.5;
    for (const Feature& feature : features) {
      scales[feature.index] = std::exp2(std::round(std::log2(feature.largest) - mean - offset));
    }
    const double found = evenness(features, scales);
    if (found <= most) continue;
    most = found;
    best = scales;
  }
  return best;
}

/// Decides which fold the readers of one norm allow.
class FoldPlanner : Planner {
 public:
  using Planner::Planner;

  NormPlan decide(std::size_t index) {
    const Norm& norm = model_.norms[index];
    NormPlan result{index};
    if (!norm.gain && !norm.bias) {
      result.fold = Fold::neutral;
      result.reason = "has no gain and no bias";
      return result;
    }
    result.reason = why_not(index);
    if (!result.reason.empty()) return result;
    NormSpec spec = models::read_norm(checkpoint_, norm);
    if (plan_.options.migrate) return decide_scales(std::move(result), std::move(spec));
    const auto is = [](double wanted) { return [wanted](double value) { return value == wanted; }; };
    const bool has_bias = !std::all_of(spec.bias.begin(), spec.bias.end(), is(0.0));
    if (std::all_of(spec.gain.begin(), spec.gain.end(), is(1.0)) && !has_bias) {
      result.fold = Fold::neutral;
      result.reason = "its gain is 1 and its bias 0";
      return result;
    }
    if (plan_.folded_before) {
      result.fold = Fold::neutral;
      result.reason = "folded before, as the file's metadata say";
      return result;
    }
    std::string slot = has_bias ? why_bias_stays(norm) : "";
    if (!slot.empty() && std::all_of(spec.gain.begin(), spec.gain.end(), is(1.0))) {
      result.fold = Fold::neutral;
      result.reason = "its gain is 1; the norm's bias stays: " + slot;
      return result;
    }
    if (!slot.empty()) {
      if (const std::string why = why_not_divided(norm, spec); !why.empty()) {
        result.reason = slot + ", and " + why;
        return result;
      }
      result.reason = slot + ": the norm's bias stays, divided by the gain";
    }
    result.fold = has_bias && slot.empty() ? Fold::gain_and_bias : Fold::gain;
    add_edits(index, spec, has_bias, slot.empty());
    plan_.specs[index] = std::move(spec);
    return result;
  }

 private:
  /// Powers of two that make the largest values of the norm's outputs similar.
  [[nodiscard]] NormPlan decide_scales(NormPlan result, NormSpec spec) {
    result.fold = Fold::neutral;
    if (plan_.migrated_before || plan_.folded_before) {
      result.reason = "rewritten before, as the file's metadata say";
      return result;
    }
    std::vector<double> scales = even_scales(spec);
    if (std::all_of(scales.begin(), scales.end(), [](double scale) { return scale == 1.0; })) {
      result.reason = "no powers of two even the ranges of its features more";
      return result;
    }
    const Norm& norm = model_.norms[result.norm];
    result.fold = Fold::scales;
    add_reader_edits(result.norm, false);
    if (norm.gain)
      plan_.edits.push_back({Change::divide_by_scale, norm.gain->tensor, *norm.gain, {}, result.norm});
    if (norm.bias)
      plan_.edits.push_back({Change::divide_by_scale, norm.bias->tensor, *norm.bias, {}, result.norm});
    spec.gain = std::move(scales);
    plan_.specs[result.norm] = std::move(spec);
    return result;
  }

  /// Why no change of the readers can replace the gain; empty if one can.
  [[nodiscard]] std::string why_not(std::size_t index) const {
    const Norm& norm = model_.norms[index];
    if (!norm.not_modelled.empty()) return "not modelled: " + norm.not_modelled;
    if (norm.applications > 1) {
      return fmt::format("its weights are shared: it is applied {} times", norm.applications);
    }
    if (norm.gain && norm.gain->count != norm.width) return "its gain is one number for all features";
    for (const auto* parameter : {&norm.gain, &norm.bias}) {
      if (!*parameter) continue;
      const files::Tensor& tensor = *checkpoint_.find((*parameter)->tensor);
      if (uses_.parameters_at(**parameter) > 1) {
        return fmt::format("{} is shared with another norm", files::quote(tensor.name));
      }
      if (std::string why = why_not_stored(**parameter); !why.empty()) return why;
    }
    if (uses_.enters_stream(norm.name)) {
      return norm.placement == Placement::inside
                 ? "its output is added to the residual stream, behind a branch (sandwich norm)"
                 : "its output is also the residual stream (post-norm)";
    }
    if (norm.placement == Placement::unknown) return "where it stands is not known";
    if (norm.readers.empty()) {
      const bool is_of_heads = norm.role == "query norm" || norm.role == "key norm";
      return is_of_heads ? "no linear map reads it, but products of queries and keys"
                         : "no linear map of the file reads it";
    }
    if (!norm.readers_known) return "not all of what reads it is known";
    for (const Linear& reader : norm.readers) {
      if (std::string why = why_not_moved(index, reader); !why.empty()) return why;
    }
    return {};
  }

  [[nodiscard]] std::string why_not_moved(std::size_t index, const Linear& reader) const {
    if (std::string why = why_not_reader(index, reader, "it"); !why.empty()) return why;
    if (reader.bias) {
      if (std::string why = why_not_stored(*reader.bias); !why.empty()) return why;
    }
    if (is_head_table(model_, reader) && !plan_.untied) {
      return fmt::format("its reader {} is the token embedding too; {}",
                         files::quote(reader.weight.selector()),
                         advice_on_tie(checkpoint_, model_, reader.weight.tensor));
    }
    return {};
  }

  /// Why some reader cannot take a bias; empty if all can.
  [[nodiscard]] std::string why_bias_stays(const Norm& norm) const {
    for (const Linear& reader : norm.readers) {
      const std::string name = files::quote(reader.weight.selector());
      if (!reader.bias) return fmt::format("{} has no bias", name);
      if (uses_.biases_at(*reader.bias) > 1) return fmt::format("{} shares its bias", name);
      if (reader.role == "unembedding" && model_.vocabulary->logit_scale != 1.0) {
        return fmt::format("the bias of {} is not scaled as its products are", name);
      }
    }
    return {};
  }

  /// Why W (g n + b) is not W G (n + b / g) in the norm's dtype.
  [[nodiscard]] std::string why_not_divided(const Norm& norm, const NormSpec& spec) const {
    const Dtype dtype = checkpoint_.find(norm.bias->tensor)->dtype;
    const double largest = dtype == Dtype::F16 ? 65504.0 : dtype == Dtype::F64 ? 1e300 : 3e38;
    for (std::size_t j = 0; j < spec.bias.size(); ++j) {
      if (spec.bias[j] != 0.0 && spec.gain_at(j) == 0.0) {
        return fmt::format("its gain at feature {} is 0 where its bias is not", j);
      }
      if (spec.bias[j] != 0.0 && !(std::abs(spec.bias[j] / spec.gain_at(j)) <= largest)) {
        return fmt::format("its bias over its gain at feature {} leaves the range of {}", j,
                           to_string(dtype));
      }
    }
    return {};
  }

  void add_reader_edits(std::size_t index, bool adds_bias) {
    const Norm& norm = model_.norms[index];
    std::vector<Place> done;
    for (const Linear& reader : norm.readers) {
      if (std::find(done.begin(), done.end(), place_of(reader.weight)) != done.end()) continue;
      done.push_back(place_of(reader.weight));
      const bool moved = plan_.untied && is_head_table(model_, reader);
      Edit edit{Change::scale_inputs, moved ? plan_.untied->head : reader.weight.tensor, reader.weight,
                whole(reader), index};
      plan_.edits.push_back(edit);
      if (!adds_bias) continue;
      edit.change = Change::add_folded_bias;
      edit.tensor = reader.bias->tensor;
      edit.from = *reader.bias;
      plan_.edits.push_back(edit);
    }
  }

  void add_edits(std::size_t index, const NormSpec& spec, bool has_bias, bool folds_bias) {
    const Norm& norm = model_.norms[index];
    add_reader_edits(index, has_bias && folds_bias);
    if (!spec.gain.empty()) {
      plan_.edits.push_back({Change::neutral_gain, norm.gain->tensor, *norm.gain, {}, index});
    }
    if (has_bias) {
      plan_.edits.push_back(
          {folds_bias ? Change::zero : Change::divide_by_gain, norm.bias->tensor, *norm.bias, {}, index});
    }
  }
};

}  // namespace

void plan_folds(const Checkpoint& checkpoint, const Model& model, const Uses& uses, Plan& plan) {
  FoldPlanner planner(checkpoint, model, uses, plan);
  for (std::size_t index = 0; index < model.norms.size(); ++index) {
    plan.norms.push_back(plan.options.fold_gains || plan.options.migrate
                             ? planner.decide(index)
                             : NormPlan{index, Fold::nothing, "not asked for"});
  }
}

}  // namespace normscope::rewrite
