#include <algorithm>

#include <fmt/format.h>

#include <normscope/files/source.hpp>

#include "planning.hpp"

namespace normscope::rewrite {
namespace {

using files::Checkpoint;
using models::Linear;
using models::Model;
using models::Norm;

constexpr StreamWords rotating{"whose features its gain scales one by one", "touches"};

class RotationPlanner : Planner {
 public:
  using Planner::Planner;

  RotationPlan decide(const std::string& stack) {
    RotationPlan result;
    result.stack = stack;
    const auto [norms, writers] = stream_of(stack);
    result.norms = norms;
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
    if (!model_.rotates_exactly) {
      return fmt::format("whether all that touches the stream of {} rotates is not known for certain",
                         model_.title);
    }
    return {};
  }

  [[nodiscard]] std::string why_not_norm(std::size_t index) const {
    const Norm& norm = model_.norms[index];
    if (std::string why = why_not_turned(norm); !why.empty()) return why;
    if (norm.readers.empty()) return fmt::format("no linear map of the file reads {}", norm.name);
    if (std::string why = why_gain_is_left(index); !why.empty()) return why;
    for (const Linear& reader : norm.readers) {
      if (std::string why = why_not_reader(index, reader, norm.name); !why.empty()) return why;
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

std::string why_not_turned(const Norm& norm) {
  if (!norm.not_modelled.empty()) return "not modelled: " + norm.not_modelled;
  if ((norm.kind != NormKind::rms && norm.kind != NormKind::layer) || norm.groups != 1) {
    return fmt::format("{} is no RMSNorm or LayerNorm of all features, so it does not rotate with its input",
                       norm.name);
  }
  if (norm.applications > 1) {
    return fmt::format("{} is applied {} times", norm.name, norm.applications);
  }
  return why_not_passed(norm, rotating);
}

void plan_rotations(const Checkpoint& checkpoint, const Model& model, const Uses& uses, Plan& plan) {
  if (!plan.options.rotation) return;
  RotationPlanner planner(checkpoint, model, uses, plan);
  for (const std::string& stack : stacks_of(model, reads_stream))
    plan.rotations.push_back(planner.decide(stack));
}

}  // namespace normscope::rewrite
