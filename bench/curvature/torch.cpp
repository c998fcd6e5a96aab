#include "torch.hpp"

#include <memory>

#include <torch/torch.h>

namespace normscope::bench {

Contender automatic_hessian(const std::vector<double>& x, std::size_t width, double eps) {
  const auto measures = std::make_shared<std::vector<double>>();
  const auto run = [x, width, eps, measures] {
    const auto features = static_cast<std::int64_t>(width);
    measures->clear();
    for (std::size_t begin = 0; begin < x.size(); begin += width) {
      const torch::Tensor point =
          torch::tensor(std::vector<double>(x.begin() + static_cast<std::ptrdiff_t>(begin),
                                            x.begin() + static_cast<std::ptrdiff_t>(begin + width)),
                        torch::kFloat64)
              .requires_grad_(true);
      const torch::Tensor y = torch::layer_norm(point, {features}, {}, {}, eps);
      double measure = 0.0;
      for (std::int64_t i = 0; i < features; ++i) {
        const torch::Tensor gradient = torch::autograd::grad({y[i]}, {point}, {}, true, true)[0];
        for (std::int64_t j = 0; j < features; ++j) {
          const torch::Tensor row = torch::autograd::grad({gradient[j]}, {point}, {}, true)[0];
          measure += row.square().sum().item<double>();
        }
      }
      measures->push_back(measure);
    }
  };
  return {"libtorch double backward", run, [measures] { return *measures; }};
}

}  // namespace normscope::bench
