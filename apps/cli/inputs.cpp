#include "inputs.hpp"

#include <cmath>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/array.hpp>
#include <normscope/files/checkpoint.hpp>

namespace normscope::cli {

namespace fs = std::filesystem;

std::shared_ptr<const files::Checkpoint> Inputs::open(const fs::path& path) {
  std::shared_ptr<const files::Checkpoint>& opened = checkpoints_[path];
  if (opened) return opened;
  opened = std::make_shared<const files::Checkpoint>(files::open_noted(path, inputs_of_process()));
  add_checkpoint(*opened);
  return opened;
}

void Inputs::add_checkpoint(const files::Checkpoint& opened) {
  for (const fs::path& file : opened.files()) outputs_.protect(file);
  outputs_.protect(opened.path());
  const fs::path folder = opened.files().front().parent_path();
  for (const char* name : {"config.json", "model.safetensors.index.json", "pytorch_model.bin.index.json"})
    outputs_.protect(folder / name);
  if (opened.config_text()) outputs_.protect_folder(folder.empty() ? "." : folder);
}

files::OpenedArray Inputs::array(const std::string& name, const std::string& replaced_by) {
  if (const auto known = arrays_.find(name); known != arrays_.end()) return known->second;
  files::OpenedArray opened(name, [this](const fs::path& path) { return open(path); });
  if (opened.file()) {
    inputs_of_process().note(*opened.file());
    outputs_.protect(*opened.file(), opened.fills_file() ? replaced_by : "");
  }
  return arrays_.emplace(name, std::move(opened)).first->second;
}

std::optional<files::OpenedArray> Inputs::optional_array(const std::string& name) {
  return name.empty() ? std::nullopt : std::optional(array(name));
}

const files::Checkpoint& Inputs::checkpoint(const fs::path& path) { return *open(path); }

const models::Model& Inputs::model_of(const files::Checkpoint& checkpoint, const models::Stated& stated) {
  const auto known = models_.find(&checkpoint);
  if (known != models_.end()) return known->second;
  return models_.emplace(&checkpoint, models::describe(checkpoint, stated)).first->second;
}

MatrixInput read_matrix(const files::OpenedArray& array, Rows rows) {
  if (array.shape().empty() || array.shape().back() == 0 || (array.elements() == 0 && rows == Rows::some)) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: is empty, expected rows x width", printable(array.name())));
  }
  MatrixInput result;
  result.width = array.shape().back();
  result.rows = array.elements() / result.width;
  result.values = array.values();
  expect_finite(array.name(), result.view());
  return result;
}

void expect_finite(const std::string& name, MatrixView<const double> rows) {
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    for (std::size_t i = 0; i < rows.width(); ++i) {
      const double value = rows.row(row)[i];
      if (std::isfinite(value)) continue;
      throw Error(ErrorCode::Argument, fmt::format("{}: row {} has {} in column {}, expected finite numbers",
                                                   printable(name), row, shown(value), i));
    }
  }
}

MatrixInput read_samples(const files::OpenedArray& array) {
  const std::size_t rows = array.shape().empty() ? 0 : array.shape()[0];
  if (rows == 0 || array.elements() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: has no samples, expected rows x width", printable(array.name())));
  }
  return {array.values(), rows, array.elements() / rows};
}

std::vector<std::int64_t> read_labels(const files::OpenedArray& array) {
  if (array.shape().size() != 1) {
    throw Error(ErrorCode::Shape, fmt::format("{}: has {} axes, expected one axis of labels",
                                              printable(array.name()), array.shape().size()));
  }
  const std::vector<double> values = array.values();
  std::vector<std::int64_t> labels;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (!(std::abs(value) <= 0x1p53 && value == std::floor(value))) {
      throw Error(ErrorCode::Argument, fmt::format("{}: label {} is {}, expected an integer",
                                                   printable(array.name()), i, shown(value)));
    }
    labels.push_back(static_cast<std::int64_t>(value));
  }
  return labels;
}

std::vector<std::string> npy_files(std::initializer_list<const char*> names) {
  std::vector<std::string> files;
  for (const char* name : names) files.push_back(std::string(name) + ".npy");
  return files;
}

void write_array(Outputs& outputs, const std::string& folder, const std::string& name,
                 std::vector<double> values, std::size_t width) {
  outputs.write_into(folder, name + ".npy", [&](const std::string& path) {
    files::Array array{.shape = {values.size()}, .dtype = Dtype::F64, .values = {}};
    if (width > 0) array.shape = {values.size() / width, width};
    array.values = std::move(values);
    files::write_npy(path, array);
  });
}

}  // namespace normscope::cli
