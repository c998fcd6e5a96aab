#include "norm_rows.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/files/zip.hpp>

#include "command.hpp"
#include "matrix_input.hpp"

namespace normscope::cli {
namespace {

/// The norms that arrays of a file are named after.
std::vector<std::string> names_in(const std::string& file, Inputs& inputs) {
  std::vector<std::string> names;
  if (std::filesystem::path(file).extension() == ".npz") {
    const MappedFile mapped(file);
    for (const files::ZipMember& member : files::read_zip_directory(mapped.bytes(), file)) {
      std::string name(member.name);
      if (name.ends_with(".npy")) name.resize(name.size() - 4);
      names.push_back(std::move(name));
    }
    return names;
  }
  for (const files::Tensor& tensor : inputs.checkpoint(file).tensors()) names.emplace_back(tensor.name);
  return names;
}

rewrite::Activations rows_of(std::size_t norm, const models::Norm& description,
                             const files::OpenedArray& array) {
  const MatrixInput matrix = read_matrix(array);
  if (matrix.width != description.width) {
    throw Error(ErrorCode::Shape, fmt::format("{}: has rows of {} numbers, expected {}, the width of {}",
                                              printable(array.name()), matrix.width, description.width,
                                              printable(description.name)));
  }
  rewrite::Activations result{norm, matrix.rows, {}};
  const std::size_t tried = std::min(matrix.rows, rewrite::most_rows);
  for (std::size_t i = 0; i < tried; ++i) {
    const auto first =
        matrix.values.begin() + static_cast<std::ptrdiff_t>(i * matrix.rows / tried * matrix.width);
    result.rows.insert(result.rows.end(), first, first + static_cast<std::ptrdiff_t>(matrix.width));
  }
  return result;
}

}  // namespace

std::vector<rewrite::Activations> read_activations(const std::vector<std::string>& names,
                                                   const models::Model& model, Inputs& inputs) {
  std::vector<rewrite::Activations> result;
  const auto add = [&](const std::string& name, const std::string& array) {
    const auto found = std::find_if(model.norms.begin(), model.norms.end(),
                                    [&](const models::Norm& norm) { return norm.name == name; });
    if (found == model.norms.end()) {
      throw Error(
          ErrorCode::Argument,
          fmt::format("{}: {} is no norm of the model, expected a name such as {}", printable(array),
                      printable(name), model.norms.empty() ? "-" : printable(model.norms.front().name)));
    }
    const auto norm = static_cast<std::size_t>(found - model.norms.begin());
    if (std::any_of(result.begin(), result.end(), [&](const auto& item) { return item.norm == norm; })) {
      throw Error(ErrorCode::Argument,
                  fmt::format("{}: rows of {} are given twice", printable(array), printable(name)));
    }
    result.push_back(rows_of(norm, *found, inputs.array(array)));
  };
  for (const std::string& name : names) {
    std::error_code ignored;
    const std::size_t equals = name.find('=');
    if (equals != std::string::npos && !std::filesystem::exists(name, ignored)) {
      add(name.substr(0, equals), name.substr(equals + 1));
    } else if (std::filesystem::path(name).extension() == ".npy") {
      throw Error(ErrorCode::Argument,
                  fmt::format("{}: holds one array, expected NORM=FILE.npy, or arrays by the norms' names in "
                              "an .npz or .safetensors file",
                              printable(name)));
    } else {
      for (const std::string& member : names_in(name, inputs)) add(member, name + ":" + member);
    }
  }
  return result;
}

}  // namespace normscope::cli
