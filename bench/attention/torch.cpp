#include "torch.hpp"

#include <ATen/core/ivalue.h>  // before torch's own headers, which clang++ does not compile without it
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <memory>

namespace normscope::bench {
namespace {

using ::torch::Tensor;

Tensor tensor_of(const std::vector<float>& values, std::initializer_list<std::int64_t> shape) {
  return ::torch::from_blob(const_cast<float*>(values.data()), shape).clone();
}

}  // namespace

Contender torch(const Heads& heads) {
  const auto count = static_cast<std::int64_t>(heads.heads);
  const auto width = static_cast<std::int64_t>(heads.width);
  const auto length = static_cast<std::int64_t>(heads.length);
  const Tensor parts = tensor_of(heads.parts, {3, count, width, length}).transpose(-2, -1).contiguous();
  const Tensor by_out = tensor_of(heads.by_out, {count, width, length}).transpose(-2, -1).contiguous();
  const Tensor later = ::torch::ones({length, length}, ::torch::kBool).triu(1);
  const double dropout = heads.dropout;
  const auto gradient = std::make_shared<Tensor>();
  const auto run = [=] {
    const Tensor leaf = parts.detach().requires_grad_(true);
    Tensor scores =
        ::torch::matmul(leaf[0] / std::sqrt(static_cast<double>(width)), leaf[1].transpose(-2, -1));
    scores = scores.masked_fill(later, -std::numeric_limits<float>::infinity());
    const Tensor weights = ::torch::dropout(::torch::softmax(scores, -1), dropout, true);
    ::torch::matmul(weights, leaf[2]).backward(by_out);
    *gradient = leaf.grad();
  };
  const auto answer = [=] {
    const Tensor values = gradient->transpose(-2, -1).contiguous().to(::torch::kFloat64);
    return std::vector<double>(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
  };
  if (dropout > 0.0) return {"libtorch", run, {}};
  return {"libtorch", run, answer};
}

}  // namespace normscope::bench
