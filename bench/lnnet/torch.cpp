#include "torch.hpp"

#include <memory>

#include <ATen/core/ivalue.h>  // before torch's own headers, which clang++ does not compile without it
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <normscope/core/error.hpp>

extern "C" void openblas_set_num_threads(int threads);

namespace normscope::bench {
namespace {

struct Parameters {
  std::vector<torch::Tensor> weights;
  std::vector<torch::Tensor> biases;

  [[nodiscard]] std::vector<torch::Tensor> all() const {
    std::vector<torch::Tensor> result;
    for (std::size_t l = 0; l < weights.size(); ++l) {
      result.push_back(weights[l]);
      result.push_back(biases[l]);
    }
    return result;
  }
};

torch::Tensor logits(const nets::TrainSpec& spec, const Parameters& parameters, torch::Tensor h) {
  for (std::size_t l = 0; l < parameters.weights.size(); ++l) {
    h = torch::linear(h, parameters.weights[l], parameters.biases[l]);
    if (l + 1 == parameters.weights.size()) break;
    switch (spec.norm) {
      case NormKind::layer:
        h = torch::layer_norm(h, {static_cast<std::int64_t>(spec.width)}, {}, {}, spec.eps);
        break;
      case NormKind::rms: h = h * torch::rsqrt(h.square().mean(-1, true) + spec.eps); break;
      case NormKind::spherical: h = h * torch::rsqrt(h.square().sum(-1, true) + spec.eps); break;
      case NormKind::dyt:
      case NormKind::derf:
        throw Error(ErrorCode::Argument, "torch: an elementwise kind has no norm to train");
    }
  }
  return h;
}

}  // namespace

Contender torch(const nets::TrainSpec& spec, const nets::Dataset& data, const std::vector<double>& begin,
                std::size_t steps, unsigned threads) {
  const auto type = spec.precision == Dtype::F32 ? torch::kFloat32 : torch::kFloat64;
  const auto rows = static_cast<std::int64_t>(data.rows());
  const auto x = torch::tensor(data.x, torch::kFloat64).reshape({rows, -1}).to(type);
  const bool binary = data.classes == 2;
  const auto y =
      torch::tensor(std::vector<std::int64_t>(data.labels.begin(), data.labels.end()), torch::kInt64);
  const auto target = binary ? y.to(type) : y;
  const auto answer = std::make_shared<std::vector<double>>();
  const auto run = [=] {
    torch::set_num_threads(static_cast<int>(threads));
    // libtorch's matrix products run on OpenBLAS's own threads.
    openblas_set_num_threads(static_cast<int>(threads));
    Parameters parameters;
    std::size_t at = 0;
    const auto take = [&](const std::vector<std::int64_t>& shape, std::size_t count) {
      const std::vector<double> values(begin.begin() + static_cast<std::ptrdiff_t>(at),
                                       begin.begin() + static_cast<std::ptrdiff_t>(at + count));
      at += count;
      return torch::tensor(values, torch::kFloat64).reshape(shape).to(type).set_requires_grad(true);
    };
    std::size_t in = data.width;
    for (std::size_t l = 0; l <= spec.depth; ++l) {
      const std::size_t out = l < spec.depth ? spec.width : binary ? 1 : data.classes;
      parameters.weights.push_back(
          take({static_cast<std::int64_t>(out), static_cast<std::int64_t>(in)}, in * out));
      parameters.biases.push_back(take({static_cast<std::int64_t>(out)}, out));
      in = out;
    }
    torch::optim::Adam adam(parameters.all(), torch::optim::AdamOptions(spec.rate));
    for (std::size_t step = 0; step < steps; ++step) {
      adam.zero_grad();
      const torch::Tensor z = logits(spec, parameters, x);
      const torch::Tensor loss = binary ? torch::binary_cross_entropy_with_logits(z.squeeze(-1), target)
                                        : torch::cross_entropy_loss(z, target);
      loss.backward();
      adam.step();
    }
    answer->clear();
    for (const torch::Tensor& value : parameters.all()) {
      const auto flat = value.detach().to(torch::kFloat64).contiguous();
      answer->insert(answer->end(), flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
    }
  };
  return {"libtorch, eager", run, [answer] { return *answer; }};
}

}  // namespace normscope::bench
