#pragma once

#include <string_view>
#include <vector>

#include "config.hpp"

namespace normscope::model {

class Builder;

/// One family of models: how to recognise it, and its forward pass told in tensor names.
/// A file of architectures/ defines one, named like the file.
struct Architecture {
  std::string_view name;
  std::string_view title;
  /// Values of config.json's "model_type" it answers to.
  std::vector<std::string_view> model_types;
  /// Beginnings of tensor names that a checkpoint of this family has, "{}" standing for a number and
  /// leading components left out. The first one tells where in the file the model is.
  std::vector<std::string_view> signature;
  /// Beginnings that it does not have.
  std::vector<std::string_view> without;
  void (*describe)(Builder& b);
  /// The part of a model of several modalities that it is.
  Tower tower = Tower::text;
  /// Configuration fields that change nothing in this family, beside those of fields.cpp.
  std::vector<std::string_view> harmless{};
  /// Shares its tensor names with another family: only a model_type tells it.
  bool by_model_type_only = false;
};

/// Every architecture of src/model/architectures; generated from the folder.
std::vector<const Architecture*> all_architectures();

}  // namespace normscope::model
