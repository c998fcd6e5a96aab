#include "language/network.hpp"

#include <ATen/core/ivalue.h>  // before torch's own headers, which clang++ does not compile without it
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "language/attention.hpp"

namespace normscope::lab::language {
namespace {

using torch::Tensor;

constexpr double beta1 = 0.9;
constexpr double beta2 = 0.999;
constexpr double adam_eps = 1e-8;

std::int64_t signed_size(std::size_t size) { return static_cast<std::int64_t>(size); }

/// Returns the tensors in the order of the forward pass, as views of one vector.
class Cursor {
 public:
  explicit Cursor(const Tensor& flat) : flat_(flat) {}

  Tensor next(std::size_t rows, std::size_t columns) {
    const std::int64_t count = signed_size(rows * columns);
    offset_ += count;
    return flat_.narrow(0, offset_ - count, count).view({signed_size(rows), signed_size(columns)});
  }
  Tensor next(std::size_t size) { return next(1, size).view({-1}); }
  [[nodiscard]] std::size_t offset() const { return static_cast<std::size_t>(offset_); }

 private:
  const Tensor& flat_;
  std::int64_t offset_ = 0;
};

struct Layer {
  Tensor attention;  // queries, keys, values; (3 width, width)
  Tensor out, out_bias;
  Tensor gain, shift;
  Tensor first, first_bias, second, second_bias;
};

struct Weights {
  Tensor tokens, positions;
  std::vector<Layer> layers{};
  Tensor gain, shift;
};

Weights cut(const Shape& shape, Cursor& cursor) {
  Weights weights;
  weights.tokens = cursor.next(shape.vocabulary, shape.width);
  weights.positions = cursor.next(shape.context, shape.width);
  for (std::size_t i = 0; i < shape.layers; ++i) {
    Layer layer;
    layer.attention = cursor.next(3 * shape.width, shape.width);
    layer.out = cursor.next(shape.width, shape.width);
    layer.out_bias = cursor.next(shape.width);
    layer.gain = cursor.next(shape.width);
    layer.shift = cursor.next(shape.width);
    layer.first = cursor.next(shape.hidden, shape.width);
    layer.first_bias = cursor.next(shape.hidden);
    layer.second = cursor.next(shape.width, shape.hidden);
    layer.second_bias = cursor.next(shape.width);
    weights.layers.push_back(layer);
  }
  weights.gain = cursor.next(shape.width);
  weights.shift = cursor.next(shape.width);
  return weights;
}

std::size_t count_of(const Shape& shape) {
  const std::size_t layer =
      4 * shape.width * shape.width + 2 * shape.width * shape.hidden + shape.hidden + 4 * shape.width;
  return (shape.vocabulary + shape.context + 2) * shape.width + shape.layers * layer;
}

/// Weights from our own random numbers, gains 1, biases 0.
Tensor initial(const Shape& shape, std::uint64_t seed) {
  Tensor flat = torch::zeros({signed_size(count_of(shape))});
  Cursor cursor(flat);
  Weights weights = cut(shape, cursor);
  NORMSCOPE_ASSERT(cursor.offset() == count_of(shape));
  Random random(seed);
  const auto draw = [&](const Tensor& tensor) {
    auto* values = tensor.data_ptr<float>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      values[i] = static_cast<float>(shape.deviation * random.normal());
    }
  };
  draw(weights.tokens);
  draw(weights.positions);
  for (const Layer& layer : weights.layers) {
    for (const Tensor& matrix : {layer.attention, layer.out, layer.first, layer.second}) draw(matrix);
    layer.gain.fill_(1.0);
  }
  weights.gain.fill_(1.0);
  return flat;
}

std::span<float> values_of(const Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

/// `attend` as a function that libtorch differentiates: (3, heads, width, length) to (heads, width, length).
class Attend : public torch::autograd::Function<Attend> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& parts, double dropout,
                        std::int64_t noise) {
    const Tensor whole = parts.contiguous();
    const Attention shape = shape_of(whole, dropout, noise);
    Tensor out = torch::empty({whole.size(1), whole.size(2), whole.size(3)});
    const Tensor softmax = torch::empty({whole.size(1), 2, whole.size(3)});
    attend(shape, values_of(whole), values_of(out), values_of(softmax));
    context->save_for_backward({whole, out, softmax});
    context->saved_data["dropout"] = dropout;
    context->saved_data["noise"] = noise;
    return out;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list by_out) {
    const auto saved = context->get_saved_variables();
    const Attention shape =
        shape_of(saved[0], context->saved_data["dropout"].toDouble(), context->saved_data["noise"].toInt());
    const Tensor by_parts = torch::empty_like(saved[0]);
    attend_back(shape, values_of(saved[0]), values_of(saved[1]), values_of(saved[2]),
                values_of(by_out[0].contiguous()), values_of(by_parts));
    return {by_parts, Tensor(), Tensor()};
  }

 private:
  static Attention shape_of(const Tensor& parts, double dropout, std::int64_t noise) {
    return {.heads = static_cast<std::size_t>(parts.size(1)),
            .width = static_cast<std::size_t>(parts.size(2)),
            .length = static_cast<std::size_t>(parts.size(3)),
            .dropout = dropout,
            .noise = static_cast<std::uint64_t>(noise)};
  }
};

}  // namespace

struct Network::Torch {
  Shape shape;
  Tensor flat, first_moments, second_moments;
  std::int64_t steps = 0;

  Tensor characters(std::span<const std::uint8_t> values, std::size_t rows) const {
    auto* data = const_cast<std::uint8_t*>(values.data());
    const std::int64_t length = signed_size(values.size() / rows);
    return torch::from_blob(data, {signed_size(rows), length}, torch::kUInt8).to(torch::kInt64);
  }

  Tensor attention_norm(const Tensor& x) const {
    if (shape.scales) return torch::layer_norm(x, {x.size(-1)}, {}, {}, shape.eps);
    return x - x.mean(-1, true);
  }

  Tensor drop(const Tensor& x, bool training) const { return torch::dropout(x, shape.dropout, training); }

  Tensor mix(const Layer& layer, const Tensor& x, bool training) const {
    const std::int64_t rows = x.size(0);
    const std::int64_t length = x.size(1);
    const std::int64_t heads = signed_size(shape.heads);
    const std::int64_t head_width = x.size(2) / heads;
    const Tensor parts = torch::matmul(attention_norm(x), layer.attention.t())
                             .view({rows, length, 3, heads, head_width})
                             .permute({2, 0, 3, 4, 1})
                             .reshape({3, rows * heads, head_width, length});
    const std::int64_t noise =
        training ? torch::randint(std::numeric_limits<std::int64_t>::max(), {1}, torch::kInt64)
                       .item<std::int64_t>()
                 : 0;
    const Tensor mixed = Attend::apply(parts, training ? shape.dropout : 0.0, noise)
                             .view({rows, heads, head_width, length})
                             .permute({0, 3, 1, 2})
                             .reshape({rows, length, -1});
    return drop(torch::linear(mixed, layer.out, layer.out_bias), training);
  }

  /// `inputs`, if given, receives the input of every layer's attention.
  Tensor logits(const Tensor& weights_flat, const Tensor& input, bool training,
                std::vector<Tensor>* inputs) const {
    Cursor cursor(weights_flat);
    const Weights weights = cut(shape, cursor);
    const std::int64_t width = signed_size(shape.width);
    Tensor x = drop(torch::embedding(weights.tokens, input) + weights.positions.narrow(0, 0, input.size(1)),
                    training);
    for (const Layer& layer : weights.layers) {
      if (inputs != nullptr) inputs->push_back(x);
      x = x + mix(layer, x, training);
      Tensor hidden = torch::layer_norm(x, {width}, layer.gain, layer.shift, shape.eps);
      hidden = torch::gelu(torch::linear(hidden, layer.first, layer.first_bias), "tanh");
      x = x + drop(torch::linear(hidden, layer.second, layer.second_bias), training);
    }
    return torch::matmul(torch::layer_norm(x, {width}, weights.gain, weights.shift, shape.eps),
                         weights.tokens.t());
  }

  Tensor loss(const Tensor& weights_flat, const Tensor& pieces, bool training) const {
    const std::int64_t length = pieces.size(1) - 1;
    const Tensor scores = logits(weights_flat, pieces.narrow(1, 0, length), training, nullptr);
    return torch::cross_entropy_loss(scores.reshape({-1, scores.size(-1)}),
                                     pieces.narrow(1, 1, length).reshape({-1}));
  }
};

Network::Network(const Shape& shape, std::uint64_t seed) : torch_(std::make_unique<Torch>()) {
  const std::size_t head_width = shape.heads == 0 ? 0 : shape.width / shape.heads;
  if (head_width * shape.heads != shape.width ||
      std::find(std::begin(head_widths), std::end(head_widths), head_width) == std::end(head_widths)) {
    throw Error(ErrorCode::Argument, fmt::format("language model: width {} in {} heads, expected heads of {}",
                                                 shape.width, shape.heads, fmt::join(head_widths, ", ")));
  }
  at::globalContext().setDeterministicAlgorithms(true, false);
  torch_->shape = shape;
  torch_->flat = initial(shape, seed);
  torch_->first_moments = torch::zeros_like(torch_->flat);
  torch_->second_moments = torch::zeros_like(torch_->flat);
}

Network::~Network() = default;

double Network::train(std::span<const std::uint8_t> pieces, std::size_t rows, const Rate& rate,
                      std::uint64_t noise) {
  Torch& it = *torch_;
  torch::manual_seed(noise);
  const Tensor weights = it.flat.detach().requires_grad_(true);
  const Tensor loss = it.loss(weights, it.characters(pieces, rows), true);
  loss.backward();
  const torch::NoGradGuard no_gradient;
  Tensor gradient = weights.grad();
  gradient = gradient * std::min(1.0, rate.clip / (gradient.norm().item<double>() + 1e-6));
  ++it.steps;
  it.first_moments = beta1 * it.first_moments + (1.0 - beta1) * gradient;
  it.second_moments = beta2 * it.second_moments + (1.0 - beta2) * gradient * gradient;
  const double correction1 = 1.0 - std::pow(beta1, static_cast<double>(it.steps));
  const double correction2 = 1.0 - std::pow(beta2, static_cast<double>(it.steps));
  it.flat = it.flat - rate.learning / correction1 * it.first_moments /
                          ((it.second_moments / correction2).sqrt() + adam_eps);
  return loss.item<double>();
}

double Network::loss(std::span<const std::uint8_t> pieces, std::size_t rows) {
  const torch::NoGradGuard no_gradient;
  return torch_->loss(torch_->flat, torch_->characters(pieces, rows), false).item<double>();
}

std::vector<std::vector<double>> Network::attention_inputs(std::span<const std::uint8_t> sequence) {
  const torch::NoGradGuard no_gradient;
  std::vector<Tensor> inputs;
  static_cast<void>(torch_->logits(torch_->flat, torch_->characters(sequence, 1), false, &inputs));
  std::vector<std::vector<double>> result;
  for (const Tensor& input : inputs) {
    const Tensor values = input.contiguous().to(torch::kFloat64);
    result.emplace_back(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
  }
  return result;
}

std::vector<double> Network::key_map(std::size_t layer) const {
  NORMSCOPE_ASSERT(layer < torch_->shape.layers);
  Cursor cursor(torch_->flat);
  const std::int64_t width = signed_size(torch_->shape.width);
  const Tensor keys = cut(torch_->shape, cursor)
                          .layers[layer]
                          .attention.narrow(0, width, width)
                          .contiguous()
                          .to(torch::kFloat64);
  return {keys.data_ptr<double>(), keys.data_ptr<double>() + keys.numel()};
}

std::vector<float> Network::state() const {
  std::vector<float> state;
  for (const Tensor& part : {torch_->flat, torch_->first_moments, torch_->second_moments}) {
    const Tensor values = part.contiguous();
    state.insert(state.end(), values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
  }
  state.push_back(static_cast<float>(torch_->steps));
  return state;
}

void Network::restore(std::span<const float> state) {
  const std::size_t count = count_of(torch_->shape);
  NORMSCOPE_ASSERT(state.size() == 3 * count + 1);
  Tensor* parts[] = {&torch_->flat, &torch_->first_moments, &torch_->second_moments};
  for (std::size_t i = 0; i < 3; ++i) {
    auto* data = const_cast<float*>(state.data()) + i * count;
    *parts[i] = torch::from_blob(data, {signed_size(count)}, torch::kFloat32).clone();
  }
  torch_->steps = static_cast<std::int64_t>(state.back());
}

}  // namespace normscope::lab::language
