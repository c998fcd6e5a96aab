#include <algorithm>
#include <iterator>
#include <string_view>

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

/// Architectures whose rotated models were run (scripts/model_oracle/rewrite.py). Others are refused, because
/// values that are computed without a tensor, such as a position table of sines, would not be rotated, and a
/// file does not show them.
constexpr std::string_view rotated_and_run[] = {
    "apertus", "clip",        "cohere",   "deepseek", "falcon",     "gemma", "glm",
    "gpt2",    "gpt_bigcode", "gpt_neo",  "gpt_neox", "gpt_oss",    "gptj",  "granite",
    "llama",   "mixtral",     "mpt",      "nemotron", "olmo",       "opt",   "persimmon",
    "phi",     "phi3",        "qwen_moe", "stablelm", "starcoder2", "vit"};

bool was_rotated_and_run(std::string_view architecture) {
  return std::find(std::begin(rotated_and_run), std::end(rotated_and_run), architecture) !=
         std::end(rotated_and_run);
}

bool is_of_stream(const Norm& norm) {
  return norm.placement == Placement::pre || norm.placement == Placement::post;
}

void add_once(std::vector<Linear>& maps, const Linear& map) {
  const bool known = std::any_of(maps.begin(), maps.end(), [&](const Linear& other) {
    return place_of(other.weight) == place_of(map.weight);
  });
  if (!known) maps.push_back(whole(map));
}

class RotationPlanner : Planner {
 public:
  using Planner::Planner;

  RotationPlan decide(const std::string& stack) {
    RotationPlan result;
    result.stack = stack;
    std::vector<Linear> writers;
    for (std::size_t index = 0; index < model_.norms.size(); ++index) {
      const Norm& norm = model_.norms[index];
      if (norm.stack != stack || !is_of_stream(norm)) continue;
      result.norms.push_back(index);
      for (const Linear& writer : norm.writers) add_once(writers, writer);
    }
    for (const Linear& writer : writers) result.writers.push_back(writer.weight.selector());
    result.reason = why_not(result, writers);
    if (!result.reason.empty()) return result;
    const std::size_t width = model_.norms[result.norms.front()].width;
    const RotationRequest& request = *plan_.options.rotation;
    const auto is_layer = [&](std::size_t index) { return facts(model_.norms[index].kind).centers; };
    const bool has_means = std::any_of(result.norms.begin(), result.norms.end(), is_layer);
    if (!request.matrix) {
      result.rotation = std::make_shared<const Rotation>(Rotation::random(width, request.seed, has_means));
    } else if (request.matrix->width() != width) {
      result.reason =
          fmt::format("the matrix rotates {} features, the stream has {}", request.matrix->width(), width);
      return result;
    } else if (has_means && !request.matrix->keeps_ones()) {
      const auto found = std::find_if(result.norms.begin(), result.norms.end(), is_layer);
      result.reason = fmt::format(
          "{} is a LayerNorm, which subtracts the mean, and the matrix does not map (1, ..., 1) to itself",
          model_.norms[*found].name);
      return result;
    } else {
      result.rotation = request.matrix;
    }
    for (const std::size_t index : result.norms) rotate_norm(index, result.rotation);
    for (const Linear& writer : writers) rotate_writer(writer, result.norms.back(), result.rotation);
    return result;
  }

 private:
  [[nodiscard]] std::string why_not(const RotationPlan& stream, const std::vector<Linear>& writers) const {
    for (const std::size_t index : stream.norms) {
      if (std::string why = why_not_norm(index); !why.empty()) return why;
    }
    if (model_.norms[stream.norms.back()].role != "final") {
      return "its last reader is not a final norm";
    }
    for (const Linear& writer : writers) {
      if (std::string why = why_not_writer(writer); !why.empty()) return why;
    }
    if (!was_rotated_and_run(model_.architecture)) {
      return fmt::format("whether all that touches the stream of {} rotates is not known for certain",
                         model_.title);
    }
    return {};
  }

  [[nodiscard]] std::string why_not_norm(std::size_t index) const {
    const Norm& norm = model_.norms[index];
    if (!norm.not_modelled.empty()) return "not modelled: " + norm.not_modelled;
    if ((norm.kind != NormKind::rms && norm.kind != NormKind::layer) || norm.groups != 1) {
      return fmt::format(
          "{} is no RMSNorm or LayerNorm of all features, so it does not rotate with its input", norm.name);
    }
    if (norm.applications > 1) {
      return fmt::format("{} is applied {} times", norm.name, norm.applications);
    }
    if (norm.placement == Placement::post) {
      return fmt::format(
          "the output of {} is the stream (post-norm), whose features its gain scales one by one", norm.name);
    }
    if (!norm.writing_norms.empty()) {
      return fmt::format("the norm {} writes to the stream, whose features its gain scales one by one",
                         norm.writing_norms.front());
    }
    if (!norm.connections_known) return fmt::format("not all of what touches {} is known", norm.name);
    if (norm.readers.empty()) return fmt::format("no linear map of the file reads {}", norm.name);
    if (std::string why = why_gain_is_left(index); !why.empty()) return why;
    for (const Linear& reader : norm.readers) {
      if (!reader.not_modelled.empty()) return "not modelled: " + reader.not_modelled;
      const std::string name = files::quote(reader.weight.selector());
      const files::Tensor& tensor = *checkpoint_.find(reader.weight.tensor);
      if (!is_rewritable(tensor.dtype)) {
        return fmt::format("{} is stored as {}", name, to_string(tensor.dtype));
      }
      if (reader.in != norm.width) return fmt::format("{} reads {} features", name, reader.in);
      if (uses_.readers_of(reader.weight).size() > 1) return fmt::format("{} reads another norm too", name);
      if (!uses_.covered(index, reader)) {
        return fmt::format("not all outputs of {} are known to read {}", name, norm.name);
      }
    }
    return {};
  }

  [[nodiscard]] std::string why_gain_is_left(std::size_t index) const {
    const Norm& norm = model_.norms[index];
    const NormPlan& fold = plan_.norms[index];
    for (const auto* parameter : {&norm.gain, &norm.bias}) {
      if (*parameter && uses_.parameters_at(**parameter) > 1) {
        return fmt::format("{} is shared with another norm", files::quote((*parameter)->tensor));
      }
    }
    if (fold.fold == Fold::gain || fold.fold == Fold::gain_and_bias) return {};
    const NormSpec spec = models::read_norm(checkpoint_, norm);
    const bool is_one =
        std::all_of(spec.gain.begin(), spec.gain.end(), [](double gain) { return gain == 1.0; });
    if (is_one && fold.fold != Fold::scales) return {};
    return plan_.options.fold_gains
               ? fmt::format("{} keeps its gain: {}", norm.name, fold.reason)
               : fmt::format("{} has a gain, which folding gains moves into its readers", norm.name);
  }

  [[nodiscard]] std::string why_not_writer(const Linear& writer) const {
    if (!writer.not_modelled.empty()) return "not modelled: " + writer.not_modelled;
    const std::string name = files::quote(writer.weight.selector());
    for (const auto* slice : {&writer.weight, writer.bias ? &*writer.bias : nullptr}) {
      if (slice == nullptr) continue;
      const files::Tensor& tensor = *checkpoint_.find(slice->tensor);
      if (!is_rewritable(tensor.dtype)) {
        return fmt::format("{} is stored as {}", files::quote(slice->selector()), to_string(tensor.dtype));
      }
    }
    if (uses_.stacks_written(writer.weight) > 1) return fmt::format("{} writes to two streams", name);
    const bool reads = !uses_.readers_of(writer.weight).empty();
    if (reads && !is_head_table(model_, writer)) {
      return fmt::format("{} reads a norm and writes to the stream", name);
    }
    return {};
  }

  [[nodiscard]] Edit* edit_at(const std::string& tensor, const models::Slice& from) {
    const auto found = std::find_if(plan_.edits.begin(), plan_.edits.end(), [&](const Edit& edit) {
      return edit.tensor == tensor && edit.from.offset == from.offset;
    });
    return found == plan_.edits.end() ? nullptr : &*found;
  }

  /// Turns the edit of that place into a rotation, or adds one.
  Edit& rotate(Change change, const std::string& tensor, const models::Slice& from,
               const std::shared_ptr<const Rotation>& rotation) {
    Edit* edit = edit_at(tensor, from);
    if (edit == nullptr) edit = &plan_.edits.emplace_back(Edit{change, tensor, from});
    edit->centers = edit->change == Change::center || edit->change == Change::center_outputs;
    edit->divides = edit->change == Change::divide_by_gain;
    edit->change = change;
    edit->rotation = rotation;
    return *edit;
  }

  void rotate_norm(std::size_t index, const std::shared_ptr<const Rotation>& rotation) {
    const Norm& norm = model_.norms[index];
    if (plan_.specs[index].width == 0) plan_.specs[index] = models::read_norm(checkpoint_, norm);
    std::vector<Linear> readers;
    for (const Linear& reader : norm.readers) add_once(readers, reader);
    for (const Linear& reader : readers) {
      const bool is_table = is_head_table(model_, reader);
      if (is_table && !plan_.untied) continue;  // it is rotated as the token embedding
      Edit& edit = rotate(Change::rotate_inputs, is_table ? plan_.untied->head : reader.weight.tensor,
                          reader.weight, rotation);
      edit.map = reader;
      edit.norm = index;
    }
    const bool bias_is_folded = plan_.norms[index].fold == Fold::gain_and_bias;
    const NormSpec& spec = plan_.specs[index];
    const bool has_bias = std::any_of(spec.bias.begin(), spec.bias.end(), [](double b) { return b != 0.0; });
    if (has_bias && !bias_is_folded) {
      rotate(Change::rotate, norm.bias->tensor, *norm.bias, rotation).norm = index;
    }
  }

  void rotate_writer(const Linear& writer, std::size_t reader,
                     const std::shared_ptr<const Rotation>& rotation) {
    Edit& edit = rotate(Change::rotate_outputs, writer.weight.tensor, writer.weight, rotation);
    edit.map = writer;
    edit.norm = reader;
    if (writer.bias) rotate(Change::rotate, writer.bias->tensor, *writer.bias, rotation).norm = reader;
  }
};

}  // namespace

void plan_rotations(const Checkpoint& checkpoint, const Model& model, const Uses& uses, Plan& plan) {
  if (!plan.options.rotation) return;
  RotationPlanner planner(checkpoint, model, uses, plan);
  for (const std::string& stack : stacks_of(model, is_of_stream))
    plan.rotations.push_back(planner.decide(stack));
}

}  // namespace normscope::rewrite
