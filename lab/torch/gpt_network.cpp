#include "gpt/network.hpp"

#include <ATen/core/ivalue.h>  // before torch's own headers, which clang++ does not compile without it
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gpt/recipe.hpp"
#include "threads.hpp"

namespace normscope::lab {
namespace {

using torch::Tensor;

Tensor token_tensor(const std::vector<std::int64_t>& tokens, const Batch& batch) {
  const auto rows = static_cast<std::int64_t>(batch.rows);
  const auto length = static_cast<std::int64_t>(batch.length);
  return torch::from_blob(const_cast<std::int64_t*>(tokens.data()), {rows, length}, torch::kInt64);
}

/// Hands out the tensors in the order of `parameters` and applies the layers made of them.
class Layers {
 public:
  Layers(const std::vector<Tensor>& tensors, double epsilon) : next_(tensors.data()), epsilon_(epsilon) {}

  const Tensor& weight() { return *next_++; }

  Tensor norm(const Tensor& x) {
    const Tensor& gain = weight();
    const Tensor& bias = weight();
    return torch::layer_norm(x, {x.size(-1)}, gain, bias, epsilon_);
  }

  Tensor linear(const Tensor& x) {
    const Tensor& matrix = weight();
    const Tensor& bias = weight();
    return torch::addmm(bias, x, matrix);
  }

 private:
  const Tensor* next_;
  double epsilon_;
};

}  // namespace

struct Network::Torch {
  Recipe recipe;
  std::vector<Parameter> tensors;

  std::vector<Tensor> leaves(std::span<const float> values, bool with_gradient) const {
    std::vector<Tensor> result;
    for (const Parameter& tensor : tensors) {
      const std::vector<std::int64_t> shape(tensor.shape.begin(), tensor.shape.end());
      auto* data = const_cast<float*>(values.data()) + tensor.offset;
      result.push_back(torch::from_blob(data, shape, torch::kFloat32).requires_grad_(with_gradient));
    }
    return result;
  }

  /// Causal attention of every head.
  ///
  /// Shapes    qkv (rows · length × 3 width), result (rows · length × width)
  Tensor attend(const Tensor& qkv, const Batch& batch) const {
    const auto rows = static_cast<std::int64_t>(batch.rows);
    const auto length = static_cast<std::int64_t>(batch.length);
    const auto heads = static_cast<std::int64_t>(recipe.heads);
    const auto head_width = static_cast<std::int64_t>(recipe.width / recipe.heads);
    const Tensor parts = qkv.view({rows, length, 3, heads, head_width}).permute({2, 0, 3, 1, 4});
    const Tensor later = torch::ones({length, length}, torch::kBool).triu(1);
    const Tensor scores =
        torch::matmul(parts[0], parts[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(head_width));
    const Tensor weights =
        torch::softmax(scores.masked_fill(later, -std::numeric_limits<float>::infinity()), -1);
    return torch::matmul(weights, parts[2]).transpose(1, 2).reshape({rows * length, heads * head_width});
  }

  /// Shapes    result (rows · length × tokens)
  Tensor forward(const std::vector<Tensor>& leaves, const Batch& batch) const {
    Layers layers(leaves, recipe.layer_norm_epsilon);
    const auto width = static_cast<std::int64_t>(recipe.width);
    const Tensor tokens = torch::embedding(layers.weight(), token_tensor(batch.inputs, batch));
    const Tensor positions = layers.weight().narrow(0, 0, static_cast<std::int64_t>(batch.length));
    Tensor stream = (tokens + positions).view({-1, width});
    for (std::size_t layer = 0; layer < recipe.layers; ++layer) {
      const Tensor qkv = layers.linear(layers.norm(stream));
      stream = stream + layers.linear(attend(qkv, batch));
      const Tensor hidden = layers.linear(layers.norm(stream));
      stream = stream + layers.linear(torch::gelu(hidden, "tanh"));
    }
    const Tensor last = layers.norm(stream);
    return torch::matmul(last, layers.weight().t());
  }
};

Network::Network(const Recipe& recipe, int threads)
    : torch_(std::make_unique<Torch>(Torch{recipe, parameters(recipe)})) {
  use_threads(threads);
  at::globalContext().setDeterministicAlgorithms(true, false);
}

Network::~Network() = default;

double Network::loss_and_gradient(std::span<const float> values, const Batch& batch,
                                  std::span<float> gradient) {
  const std::vector<Tensor> leaves = torch_->leaves(values, true);
  const Tensor targets = token_tensor(batch.targets, batch).view({-1});
  const Tensor loss = torch::cross_entropy_loss(torch_->forward(leaves, batch), targets);
  loss.backward();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Parameter& tensor = torch_->tensors[i];
    const Tensor piece = leaves[i].grad().contiguous();
    std::copy_n(piece.data_ptr<float>(), tensor.count, gradient.begin() + tensor.offset);
  }
  return loss.item<double>();
}

std::vector<float> Network::logits(std::span<const float> values, const Batch& batch) {
  const torch::NoGradGuard no_gradient;
  const Tensor scores = torch_->forward(torch_->leaves(values, false), batch).contiguous();
  const auto* data = scores.data_ptr<float>();
  return {data, data + scores.numel()};
}

}  // namespace normscope::lab
