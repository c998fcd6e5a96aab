#include "torch.hpp"

#include <memory>

#include <ATen/core/ivalue.h>  // before torch's own headers, which clang++ does not compile without it
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace normscope::bench {
namespace {

using torch::autograd::grad;

/// A contender that measures one row after another on one thread.
Contender a_row_at_a_time(const std::string& name, const std::vector<double>& x, std::size_t width,
                          const std::function<double(const torch::Tensor&)>& measure) {
  const auto measures = std::make_shared<std::vector<double>>();
  const auto run = [x, width, measure, measures] {
    torch::set_num_threads(1);
    measures->clear();
    for (std::size_t begin = 0; begin < x.size(); begin += width) {
      const auto first = x.begin() + static_cast<std::ptrdiff_t>(begin);
      const std::vector<double> row(first, first + static_cast<std::ptrdiff_t>(width));
      measures->push_back(measure(torch::tensor(row, torch::kFloat64)));
    }
  };
  return {name, run, [measures] { return *measures; }};
}

}  // namespace

Contender automatic_hessian(const std::vector<double>& x, std::size_t width, double eps) {
  return a_row_at_a_time("libtorch double backward", x, width, [eps](const torch::Tensor& row) {
    const torch::Tensor point = row.clone().requires_grad_(true);
    const torch::Tensor y = torch::layer_norm(point, row.sizes(), {}, {}, eps);
    double measure = 0.0;
    for (std::int64_t i = 0; i < row.size(0); ++i) {
      const torch::Tensor gradient = grad({y[i]}, {point}, {}, true, true)[0];
      for (std::int64_t j = 0; j < row.size(0); ++j) {
        measure += grad({gradient[j]}, {point}, {}, true)[0].square().sum().item<double>();
      }
    }
    return measure;
  });
}

Contender batched_hessian(const std::vector<double>& x, std::size_t width, double eps) {
  return a_row_at_a_time("libtorch, batched", x, width, [eps](const torch::Tensor& row) {
    // A copy of the point for each input: each copy differentiates another entry of its gradient, so one
    // backward pass gives a whole matrix ∂²y_i/∂x².
    const torch::Tensor copies = row.repeat({row.size(0), 1}).requires_grad_(true);
    const torch::Tensor y = torch::layer_norm(copies, row.sizes(), {}, {}, eps);
    double measure = 0.0;
    for (std::int64_t i = 0; i < row.size(0); ++i) {
      const torch::Tensor gradient = grad({y.select(1, i).sum()}, {copies}, {}, true, true)[0];
      const torch::Tensor second = grad({gradient.diagonal().sum()}, {copies}, {}, true)[0];
      measure += second.square().sum().item<double>();
    }
    return measure;
  });
}

}  // namespace normscope::bench
