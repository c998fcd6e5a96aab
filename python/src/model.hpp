#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>
#include <normscope/models/model.hpp>

namespace normscope::python {

/// An open checkpoint and what is known of its model. Its files are not mapped: a mapping of a file that
/// another process truncates ends this one.
class Model {
 public:
  Model(const std::string& path, models::Stated stated)
      : checkpoint_(files::open_noted(path, noted_, files::read_file)),
        stated_(std::move(stated)),
        model_(models::describe(checkpoint_, stated_)) {}

  /// Call after the last tensor of a result was read.
  ///
  /// Errors    Io if a file is not the one that was opened
  void expect_unchanged() const { noted_.expect(); }
  [[nodiscard]] const files::Checkpoint& checkpoint() const { return checkpoint_; }
  [[nodiscard]] const models::Stated& stated() const { return stated_; }
  [[nodiscard]] const models::Model& described() const { return model_; }

  /// Errors    Argument for a name that no norm has
  [[nodiscard]] const models::Norm& norm(const std::string& name) const {
    for (const models::Norm& norm : model_.norms) {
      if (norm.name == name) return norm;
    }
    throw Error(ErrorCode::Argument,
                fmt::format("{}: no norm \"{}\" among its {}{}", checkpoint_.path().string(), name,
                            model_.norms.size(), similar(name, model_.norms)));
  }

  /// Errors    Argument for a name that no tensor has
  [[nodiscard]] const files::Tensor& tensor(const std::string& name) const {
    if (const files::Tensor* const found = checkpoint_.find(name)) return *found;
    throw Error(ErrorCode::Argument, fmt::format("{}: no tensor \"{}\"{}", checkpoint_.path().string(), name,
                                                 similar(name, checkpoint_.tensors())));
  }

 private:
  /// The end of a message about a name that none of these has.
  template <typename Named>
  static std::string similar(const std::string& name, const Named& all) {
    std::vector<std::string_view> names;
    for (const auto& one : all) names.push_back(one.name);
    const std::string_view nearest = nearest_name(name, names);
    return nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
  }

  UnchangedFiles noted_{};
  files::Checkpoint checkpoint_;
  models::Stated stated_;
  models::Model model_;
};

}  // namespace normscope::python
