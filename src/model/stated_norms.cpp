#include "stated_norms.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/text.hpp>

#include "inventory.hpp"

namespace normscope::model {

namespace {

using checkpoint::Checkpoint;

std::optional<Slice> whole(const Checkpoint& checkpoint, const std::string& name) {
  const checkpoint::Tensor* tensor = checkpoint.find(name);
  if (tensor == nullptr) return {};
  return Slice{name, 0, tensor->elements(), {}};
}

std::optional<Linear> reader_of(const Checkpoint& checkpoint, const StatedReader& stated) {
  const checkpoint::Tensor* weight = checkpoint.find(stated.weight);
  if (weight == nullptr || weight->shape.size() != 2) return {};
  Linear linear;
  linear.role = "linear";
  linear.weight = *whole(checkpoint, stated.weight);
  linear.bias = whole(checkpoint, stated.bias);
  linear.layout = stated.in_out ? Layout::in_out : Layout::out_in;
  linear.in = weight->shape[stated.in_out ? 0 : 1];
  linear.out = weight->shape[stated.in_out ? 1 : 0];
  linear.stored_out = linear.out;
  return linear;
}

Norm norm_of(const Checkpoint& checkpoint, const StatedNorm& stated) {
  Norm norm;
  norm.name = stated.name;
  norm.role = "unknown";
  norm.layer = first_number(stated.name);
  norm.kind = stated.kind;
  norm.width = stated.width;
  norm.eps = stated.eps;
  norm.eps_source = Source::tensors;
  norm.gain = whole(checkpoint, stated.gain);
  norm.bias = whole(checkpoint, stated.bias);
  return norm;
}

}  // namespace

void append_stated_norms(const Checkpoint& checkpoint, std::span<const StatedNorm> all, Model& model) {
  std::map<std::tuple<std::string, std::string, double>, std::size_t> by_parameters;
  std::map<std::string, int> times_named;
  const std::size_t before = model.norms.size();
  for (const StatedNorm& stated : all) {
    std::size_t index = model.norms.size();
    if (!stated.gain.empty() || !stated.bias.empty()) {
      index = by_parameters.try_emplace({stated.gain, stated.bias, stated.eps}, index).first->second;
    }
    if (index < model.norms.size()) {
      ++model.norms[index].applications;
    } else {
      model.norms.push_back(norm_of(checkpoint, stated));
      Norm& norm = model.norms.back();
      norm.order_known = before == 0;
      if (const int times = ++times_named[norm.name]; times > 1) norm.name += fmt::format(" ({})", times);
      if (stated.axis != -1) {
        // Its coordinates are not those of norms along the last axis: nothing compares them.
        norm.stack = fmt::format("axis {}", stated.axis);
        model.notes.push_back(fmt::format(
            "{} normalizes axis {}, counted from the end: its gain indexes that axis, not the last",
            norm.name, stated.axis));
      }
    }
    for (const StatedReader& reader : stated.readers) {
      if (std::optional<Linear> linear = reader_of(checkpoint, reader)) {
        model.norms[index].readers.push_back(std::move(*linear));
      }
    }
  }
  model.notes.push_back(fmt::format(
      "{} are those stated in the file's graph; only linear maps that read them directly are listed as "
      "readers, and their writers are not known",
      before == 0 ? "norms" : counted(model.norms.size() - before, "norm")));
}

void take_stated_eps(std::span<const StatedNorm> all, Model& model) {
  std::map<std::string_view, double> eps_of;  // by gain
  for (const StatedNorm& stated : all) eps_of.try_emplace(stated.gain, stated.eps);
  for (Norm& norm : model.norms) {
    if (norm.eps_source != Source::assumed || !norm.gain) continue;
    const auto found = eps_of.find(norm.gain->tensor);
    if (found == eps_of.end()) continue;
    norm.eps = found->second;
    norm.eps_source = Source::tensors;
  }
}

}  // namespace normscope::model
