#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/model/model.hpp>

namespace normscope::model {

namespace {

std::vector<double> read_slice(const checkpoint::Checkpoint& checkpoint, const Slice& slice) {
  const checkpoint::Tensor* tensor = checkpoint.find(slice.tensor);
  if (tensor == nullptr) {
    throw Error(ErrorCode::Argument, fmt::format("model: {}: no tensor \"{}\", expected one",
                                                 checkpoint.path().string(), slice.tensor));
  }
  if (!is_floating(tensor->dtype)) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("model: {}: tensor \"{}\" is {}, expected a floating-point type",
                            checkpoint.file_of(*tensor).string(), slice.tensor, to_string(tensor->dtype)));
  }
  return checkpoint::read(*tensor, slice.offset, slice.count);
}

}  // namespace

std::string Slice::selector() const { return index ? fmt::format("{}[{}]", tensor, *index) : tensor; }

NormSpec read_norm(const checkpoint::Checkpoint& checkpoint, const Norm& norm) {
  NormSpec spec;
  spec.kind = norm.kind;
  spec.width = norm.width;
  spec.groups = norm.groups;
  spec.eps = norm.eps;
  if (norm.gain) {
    spec.gain = read_slice(checkpoint, *norm.gain);
    for (double& gain : spec.gain) gain += norm.gain_offset;
  }
  if (norm.bias) spec.bias = read_slice(checkpoint, *norm.bias);
  return spec;
}

}  // namespace normscope::model
