#include <ATen/core/ivalue.h>  // before torch's own headers, which clang++ does not compile without it
#include <torch/types.h>
#include <torch/utils.h>

#include "problem.hpp"

namespace normscope::bench {
namespace {

struct Tensors {
  torch::Tensor x, dy, gain, bias, mean, scale;
  std::vector<torch::Tensor> results;
  std::vector<std::int64_t> shape;
  double eps = 0.0;
};

torch::ScalarType type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64: return torch::kFloat64;
    case Dtype::BF16: return torch::kBFloat16;
    case Dtype::F16: return torch::kFloat16;
    default: return torch::kFloat32;
  }
}

std::shared_ptr<Tensors> tensors(const Shared& problem) {
  torch::set_num_threads(static_cast<int>(problem->threads));
  const auto own = std::make_shared<Tensors>();
  const auto type = type_of(problem->dtype);
  const auto rows = [&](const void* data) {
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(problem->rows),
                                          static_cast<std::int64_t>(problem->width)};
    return torch::from_blob(const_cast<void*>(data), shape, torch::TensorOptions(type));
  };
  const auto parameter = [&](const std::vector<float>& values) {
    return torch::from_blob(const_cast<float*>(values.data()), {static_cast<std::int64_t>(values.size())})
        .to(type);
  };
  own->x = rows(problem->x);
  own->dy = rows(problem->dy);
  own->gain = parameter(problem->gain);
  own->bias = parameter(problem->bias);
  own->shape = {static_cast<std::int64_t>(problem->width)};
  own->eps = problem->eps;
  return own;
}

void forward(Tensors& own, const torch::Tensor& x) {
  const torch::NoGradGuard guard;
  own.results.resize(1);
  std::tie(own.results[0], own.mean, own.scale) =
      at::native_layer_norm(x, own.shape, own.gain, own.bias, own.eps);
}

void backward(Tensors& own) {
  const torch::NoGradGuard guard;
  own.results.resize(3);
  std::tie(own.results[0], own.results[1], own.results[2]) = at::native_layer_norm_backward(
      own.dy, own.x, own.shape, own.mean, own.scale, own.gain, own.bias, {true, true, true});
}

}  // namespace

Peer torch(const Shared& problem, Task task) {
  // libtorch's CPU kernels do not support float16.
  if (task == Task::grouped || problem->dtype == Dtype::F16) return std::nullopt;
  const auto own = tensors(problem);
  if (task == Task::backward) forward(*own, own->x);
  const auto call = [=] {
    if (task == Task::forward) forward(*own, own->x);
    if (task == Task::backward) backward(*own);
    if (task == Task::residual) forward(*own, own->x + own->dy);
  };
  const auto results = [=] {
    std::vector<Values> all;
    for (torch::Tensor& result : own->results) {
      result = result.contiguous();
      all.push_back({result.data_ptr(), static_cast<std::size_t>(result.numel()), problem->dtype});
    }
    return all;
  };
  return Solver{task == Task::residual ? "libtorch 1.13, two steps" : "libtorch 1.13", call, results};
}

}  // namespace normscope::bench
