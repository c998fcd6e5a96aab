#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/analysis/report.hpp>
#include <normscope/files/safetensors.hpp>

#include "support/scratch.hpp"

namespace normscope::analysis {

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

  static const Finding* find_kind(const Report& report, const std::string& kind) {
    for (const Finding& finding : report.findings) {
      if (finding.kind == kind) return &finding;
    }
    return nullptr;
  }

 private:
  test::Scratch scratch_;
  std::vector<std::pair<std::string, std::vector<double>>> arrays_;
};

}  // namespace normscope::analysis
