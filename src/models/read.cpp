#include <algorithm>

#include <fmt/format.h>

#include <normscope/core/assert.hpp>
#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>
#include <normscope/models/model.hpp>

namespace normscope::models {

namespace {

const files::Tensor& tensor_of(const files::Checkpoint& checkpoint, const Slice& slice) {
  const files::Tensor* tensor = checkpoint.find(slice.tensor);
  if (tensor == nullptr) {
    throw Error(ErrorCode::Argument,
                fmt::format("model: {}: has no tensor \"{}\"", checkpoint.path().string(), slice.tensor));
  }
  if (!is_floating(tensor->dtype)) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("model: {}: tensor \"{}\" is {}, expected a floating-point type",
                            checkpoint.file_of(*tensor).string(), slice.tensor, to_string(tensor->dtype)));
  }
  return *tensor;
}

void expect_modelled(const files::Checkpoint& checkpoint, const std::string& tensor,
                     const std::string& not_modelled) {
  if (not_modelled.empty()) return;
  throw Error(ErrorCode::Unsupported, fmt::format("model: {}: \"{}\" is not modelled: {}",
                                                  checkpoint.path().string(), tensor, not_modelled));
}

std::vector<double> read_slice(const files::Checkpoint& checkpoint, const Slice& slice) {
  return files::read(tensor_of(checkpoint, slice), slice.offset, slice.count);
}

/// The index in the stored matrix of output feature `index` of the part.
std::uint64_t stored_output(const Linear& linear, std::uint64_t index) {
  return linear.out_indices.empty() ? linear.first_out + index : linear.out_indices[index];
}

}  // namespace

std::string Slice::selector() const { return index ? fmt::format("{}[{}]", tensor, *index) : tensor; }

std::string Head::place() const {
  return fmt::format("{}{}layer {} head {}", stack, stack.empty() ? "" : " ", layer, head);
}

bool Linear::covers(const Linear& part) const {
  if (weight.selector() != part.weight.selector() || role != part.role) return false;
  if (out_indices.empty()) return part.first_out >= first_out && part.first_out - first_out < out;
  return std::find(out_indices.begin(), out_indices.end(), part.first_out) != out_indices.end();
}

NormSpec read_norm(const files::Checkpoint& checkpoint, const Norm& norm) {
  expect_modelled(checkpoint, norm.name, norm.not_modelled);
  NormSpec spec;
  spec.kind = norm.kind;
  spec.width = norm.width;
  spec.groups = norm.groups;
  spec.eps = norm.eps;
  if (norm.gain) {
    spec.gain = read_slice(checkpoint, *norm.gain);
    if (spec.gain.size() == 1) spec.gain.resize(norm.width, spec.gain.front());
    for (double& gain : spec.gain) gain += norm.gain_offset;
  }
  if (norm.alpha) spec.alpha = read_slice(checkpoint, *norm.alpha)[0];
  if (norm.shift) spec.shift = read_slice(checkpoint, *norm.shift)[0];
  if (norm.bias) spec.bias = read_slice(checkpoint, *norm.bias);
  return spec;
}

std::vector<double> read_weight(const files::Checkpoint& checkpoint, const Linear& linear,
                                std::uint64_t first, std::uint64_t count) {
  NORMSCOPE_ASSERT(first + count <= linear.out);
  expect_modelled(checkpoint, linear.weight.tensor, linear.not_modelled);
  const files::Tensor& tensor = tensor_of(checkpoint, linear.weight);
  if (linear.in != 0 && count > files::largest_held / sizeof(double) / linear.in) {
    throw Error(
        ErrorCode::Unsupported,
        fmt::format("model: {}: {} x {} elements of tensor \"{}\" requested at once, expected at most {}",
                    checkpoint.file_of(tensor).string(), count, linear.in, linear.weight.tensor,
                    files::largest_held / sizeof(double)));
  }
  if (linear.layout == Layout::out_in && linear.out_indices.empty()) {
    return files::read(tensor, linear.weight.offset + (linear.first_out + first) * linear.in,
                       count * linear.in);
  }
  std::vector<double> weight(static_cast<std::size_t>(count * linear.in));
  if (linear.layout == Layout::out_in) {
    for (std::uint64_t j = 0; j < count; ++j) {
      const std::uint64_t row = stored_output(linear, first + j);
      const std::vector<double> values =
          files::read(tensor, linear.weight.offset + row * linear.in, linear.in);
      std::copy(values.begin(), values.end(), weight.begin() + static_cast<std::ptrdiff_t>(j * linear.in));
    }
    return weight;
  }
  for (std::uint64_t i = 0; i < linear.in; ++i) {
    const std::uint64_t row = linear.weight.offset + i * linear.stored_out;
    if (linear.out_indices.empty()) {
      const std::vector<double> values = files::read(tensor, row + linear.first_out + first, count);
      for (std::uint64_t j = 0; j < count; ++j) weight[j * linear.in + i] = values[j];
    } else {
      const std::vector<double> values = files::read(tensor, row, linear.stored_out);
      for (std::uint64_t j = 0; j < count; ++j) {
        weight[j * linear.in + i] = values[stored_output(linear, first + j)];
      }
    }
  }
  return weight;
}

std::vector<double> read_bias(const files::Checkpoint& checkpoint, const Linear& linear) {
  expect_modelled(checkpoint, linear.weight.tensor, linear.not_modelled);
  if (!linear.bias) return {};
  const std::vector<double> stored = read_slice(checkpoint, *linear.bias);
  std::vector<double> bias(linear.out);
  for (std::uint64_t j = 0; j < linear.out; ++j) {
    const std::uint64_t at = stored_output(linear, j);
    if (at >= stored.size()) {
      throw Error(ErrorCode::Shape,
                  fmt::format("model: {}: bias \"{}\" has {} elements, expected more than {}",
                              checkpoint.path().string(), linear.bias->tensor, stored.size(), at));
    }
    bias[j] = stored[at];
  }
  return bias;
}

}  // namespace normscope::models
