#include "found_norms.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <normscope/core/text.hpp>

#include "inventory.hpp"

namespace normscope::models {

namespace {

using files::Checkpoint;

std::optional<Slice> whole(const Checkpoint& checkpoint, const std::string& name) {
  const files::Tensor* tensor = checkpoint.find(name);
  if (tensor == nullptr) return {};
  return Slice{name, 0, tensor->elements(), {}};
}

std::optional<Linear> reader_of(const Checkpoint& checkpoint, const StatedReader& stated) {
  const files::Tensor* weight = checkpoint.find(stated.weight);
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
  norm.gain_offset = stated.gain_offset;
  norm.reasons = stated.reasons;
  return norm;
}

}  // namespace

void append_stated_norms(const Checkpoint& checkpoint, std::span<const StatedNorm> all, Model& model) {
  std::map<std::tuple<NormKind, std::int64_t, std::string, double, std::string, double>, std::size_t>
      by_parameters;
  std::map<std::string, int> times_named;
  const std::size_t before = model.norms.size();
  for (const StatedNorm& stated : all) {
    std::size_t index = model.norms.size();
    if (!stated.gain.empty() || !stated.bias.empty()) {
      index =
          by_parameters
              .try_emplace(
                  {stated.kind, stated.axis, stated.gain, stated.gain_offset, stated.bias, stated.eps}, index)
              .first->second;
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
      if (stated.is_default) {
        model.notes.push_back(fmt::format(
            "a parameter of {} is also an input of the graph, whose caller may give another", norm.name));
      }
    }
    if (!stated.other_readers.empty()) {
      model.notes.push_back(fmt::format("{} is read by maps that are not understood: {}",
                                        model.norms[index].name, first_of(stated.other_readers)));
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

void note_not_understood(std::span<const std::string> operators, Model& model) {
  if (operators.empty()) return;
  for (const std::string& text : operators) add_other_norms(model, text.substr(0, text.find(' ')), 1);
  model.notes.push_back("not understood in the graph: " + first_of(operators));
}

void add_other_norms(Model& model, const std::string& kind, std::size_t count) {
  for (OtherNorms& other : model.other_norms) {
    if (other.kind != kind) continue;
    other.count += count;
    return;
  }
  model.other_norms.push_back({kind, count});
}

std::string first_of(std::span<const std::string> texts) {
  constexpr std::size_t most = 10;
  const std::size_t count = std::min(most, texts.size());
  const std::string list = fmt::format("{}", fmt::join(texts.first(count), ", "));
  return count == texts.size() ? list : fmt::format("{}, and {} more", list, texts.size() - count);
}

void take_stated_eps(std::span<const StatedNorm> all, Model& model) {
  std::map<std::string_view, Norm*> by_gain;
  for (Norm& norm : model.norms) {
    if (norm.gain) by_gain.emplace(norm.gain->tensor, &norm);
  }
  std::vector<std::string> others;
  for (const StatedNorm& stated : all) {
    const auto found = by_gain.find(stated.gain);
    if (found == by_gain.end()) continue;
    Norm& norm = *found->second;
    if (norm.eps_source == Source::assumed) {
      norm.eps = stated.eps;
      norm.eps_source = Source::tensors;
    }
    // A graph has eps in single precision.
    const bool same_eps = std::abs(norm.eps - stated.eps) <= 1e-6 * norm.eps;
    if (norm.kind == stated.kind && same_eps && norm.gain_offset == stated.gain_offset && stated.axis == -1)
      continue;
    others.push_back(fmt::format("the graph states {} otherwise than {} has it: {} with eps {:g}{}",
                                 norm.name, model.title, facts(stated.kind).title, stated.eps,
                                 stated.gain_offset == 0.0 ? "" : " and 1 added to the gain"));
  }
  if (!others.empty()) model.notes.push_back(first_of(others));
}

}  // namespace normscope::models
