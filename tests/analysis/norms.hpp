#pragma once

#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/analysis/report.hpp>
#include <normscope/files/safetensors.hpp>

#include "support/scratch.hpp"

namespace normscope::analysis {

/// The first finding of this kind; null if there is none.
template <typename Kind>
const Finding* find_kind(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (std::holds_alternative<Kind>(finding.property)) return &finding;
  }
  return nullptr;
}

/// What that finding states.
template <typename Kind>
const Kind* find_property(const std::vector<Finding>& findings) {
  const Finding* const finding = find_kind<Kind>(findings);
  return finding == nullptr ? nullptr : &std::get<Kind>(finding->property);
}

/// A checkpoint of norms alone: norms.<i>.weight and .bias.
class Norms : public testing::Test {
 protected:
  void add(std::vector<double> gain, std::vector<double> bias = {}) {
    bias.resize(gain.size(), 0.0);
    const std::string name = "norms." + std::to_string(arrays_.size() / 2) + ".norm.";
    arrays_.push_back({name + "weight", std::move(gain)});
    arrays_.push_back({name + "bias", std::move(bias)});
  }

  Report report() const {
    std::vector<files::NewTensor> tensors;
    for (const auto& [name, values] : arrays_) {
      tensors.push_back({name, Dtype::F64, {values.size()}, std::as_bytes(std::span(values))});
    }
    files::write_safetensors(scratch_ / "m.safetensors", tensors);
    const files::Checkpoint file(scratch_ / "m.safetensors");
    models::Model model = models::describe(file);
    for (models::Norm& norm : model.norms) norm.order_known = order_known_;
    return audit(file, std::move(model));
  }

  /// Marks their order as that of the forward pass, which names alone do not determine.
  bool order_known_ = true;

 private:
  test::Scratch scratch_;
  std::vector<std::pair<std::string, std::vector<double>>> arrays_;
};

}  // namespace normscope::analysis
