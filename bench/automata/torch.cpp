#include "torch.hpp"

#include <memory>

#include <ATen/core/ivalue.h>  // before torch's own headers, which clang++ does not compile without it
#include <torch/types.h>
#include <torch/utils.h>

namespace normscope::bench {
namespace {

/// Converts between our order of the gates, i f o g, and libtorch's, i f g o, in either direction.
constexpr std::int64_t order[] = {0, 1, 3, 2};

torch::Tensor tensor(std::span<const double> values, const std::vector<std::int64_t>& shape) {
  return torch::tensor(std::vector<double>(values.begin(), values.end()), torch::kFloat64).reshape(shape);
}

}  // namespace

Contender torch(const nets::rnn::Network& network, std::span<const nets::rnn::Labelled> words,
                std::size_t calls) {
  nets::rnn::Cell cell = network.cell;
  const auto width = static_cast<std::int64_t>(cell.width);
  const auto symbols = static_cast<std::int64_t>(cell.symbols);
  std::vector<torch::Tensor> weights;
  std::vector<torch::Tensor> recurrent;
  std::vector<torch::Tensor> biases;
  for (const std::int64_t map : order) {
    const auto index = static_cast<std::size_t>(map);
    weights.push_back(tensor(cell.weight(index), {width, symbols}));
    recurrent.push_back(tensor(cell.recurrent(index), {width, width}));
    biases.push_back(tensor(cell.bias(index), {width}));
  }
  std::vector<torch::Tensor> parameters = {torch::cat(weights), torch::cat(recurrent), torch::cat(biases),
                                           torch::zeros({4 * width}, torch::kFloat64)};
  for (torch::Tensor& parameter : parameters) parameter.set_requires_grad(true);
  const std::span<const double> output(network.output);
  const torch::Tensor v = tensor(output.first(cell.width), {width}).set_requires_grad(true);
  const torch::Tensor v0 = tensor(output.last(1), {}).set_requires_grad(true);

  const auto steps = static_cast<std::int64_t>(words.front().word.size()) + 1;
  const auto batch = static_cast<std::int64_t>(words.size());
  torch::Tensor x = torch::zeros({steps, batch, symbols}, torch::kFloat64);
  torch::Tensor y = torch::zeros({batch}, torch::kFloat64);
  for (std::int64_t b = 0; b < batch; ++b) {
    const nets::rnn::Labelled& labelled = words[static_cast<std::size_t>(b)];
    y.index_put_({b}, labelled.member ? 1.0 : 0.0);
    x.index_put_({0, b, symbols - 1}, 1.0);
    for (std::int64_t t = 1; t < steps; ++t) {
      const std::int64_t letter = labelled.word[static_cast<std::size_t>(t - 1)];
      x.index_put_({t, b, letter}, 1.0);
    }
  }

  const auto answer = std::make_shared<std::vector<double>>();
  const auto run = [=] {
    torch::set_num_threads(1);
    for (std::size_t call = 0; call < calls; ++call) {
      for (const torch::Tensor& parameter : parameters) parameter.mutable_grad() = torch::Tensor();
      v.mutable_grad() = torch::Tensor();
      v0.mutable_grad() = torch::Tensor();
      const torch::Tensor start = torch::zeros({1, batch, width}, torch::kFloat64);
      const auto [all, hidden, last] =
          torch::lstm(x, {start, start}, parameters, true, 1, 0.0, true, false, false);
      torch::binary_cross_entropy_with_logits(torch::mv(hidden[0], v) + v0, y).backward();
    }
    answer->clear();
    const auto append = [&](const torch::Tensor& values) {
      const auto flat = values.contiguous();
      answer->insert(answer->end(), flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
    };
    for (const std::int64_t map : order) {
      for (std::size_t kind = 0; kind < 3; ++kind) {
        append(parameters[kind].grad().slice(0, map * width, (map + 1) * width));
      }
    }
    append(v.grad());
    append(v0.grad());
  };
  return {"libtorch, eager", run, [answer] { return *answer; }, calls};
}

}  // namespace normscope::bench
