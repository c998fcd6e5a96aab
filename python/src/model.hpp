#pragma once

#include <string>
#include <utility>

#include <fmt/format.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>
#include <normscope/model/model.hpp>

namespace normscope::python {

/// An open checkpoint and what is known of its model.
class Model {
 public:
  Model(const std::string& path, model::Stated stated)
      : checkpoint_(path), stated_(std::move(stated)), model_(model::describe(checkpoint_, stated_)) {}

  [[nodiscard]] const checkpoint::Checkpoint& checkpoint() const { return checkpoint_; }
  [[nodiscard]] const model::Stated& stated() const { return stated_; }
  [[nodiscard]] const model::Model& described() const { return model_; }

  /// Errors    Argument for a name that no norm has
  [[nodiscard]] const model::Norm& norm(const std::string& name) const {
    for (const model::Norm& norm : model_.norms) {
      if (norm.name == name) return norm;
    }
    throw Error(ErrorCode::Argument, fmt::format("{}: no norm \"{}\" among its {}",
                                                 checkpoint_.path().string(), name, model_.norms.size()));
  }

 private:
  checkpoint::Checkpoint checkpoint_;
  model::Stated stated_;
  model::Model model_;
};

}  // namespace normscope::python
