#include "grouped/network.hpp"

#include <ATen/core/ivalue.h>  // before torch's own headers, which clang++ does not compile without it
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/core.h>
#include <normscope/core/error.hpp>

#include "device.hpp"
#include "layout.hpp"

namespace normscope::lab::grouped {
namespace {

using torch::Tensor;

std::int64_t to_int64(std::size_t value) { return static_cast<std::int64_t>(value); }

/// A view of the values, or a copy on the GPU.
Tensor on_device(const float* data, const std::vector<std::int64_t>& shape) {
  return torch::from_blob(const_cast<float*>(data), shape, torch::kFloat32).to(torch::Device(device()));
}

Tensor on_device(const std::vector<std::int64_t>& values, const std::vector<std::int64_t>& shape) {
  return torch::from_blob(const_cast<std::int64_t*>(values.data()), shape, torch::kInt64)
      .to(torch::Device(device()));
}

/// Shapes    x (…, width)
Tensor normalized(const Tensor& x, std::size_t groups, double eps, const Tensor& gain, const Tensor& bias) {
  const std::int64_t size = x.size(-1) / to_int64(groups);
  return torch::layer_norm(x.reshape({-1, size}), {size}, {}, {}, eps).view(x.sizes()) * gain + bias;
}

NormInput observed(const Tensor& x, double eps) {
  const Tensor rows = x.detach().reshape({-1, x.size(-1)}).to(torch::kFloat64);
  const Tensor mean = rows.mean(-1);
  const Tensor square = (rows * rows).mean(-1);
  const Tensor cosine = mean / square.sqrt();
  const Tensor sigma = (square - mean * mean + eps).sqrt();
  return {.norm = {},
          .cosine = cosine.mean().item<double>(),
          .cosine_size = cosine.abs().mean().item<double>(),
          .sigma = sigma.mean().item<double>(),
          .sigma_deviation = sigma.std(false).item<double>(),
          .mean_square = square.mean().item<double>()};
}

/// A forward pass, which reads the tensors in the order of `layout`.
class Pass {
 public:
  Pass(const Shape& shape, const std::vector<Tensor>& tensors, Observation* observation = nullptr)
      : shape_(shape), next_(tensors.data()), observation_(observation) {}

  /// Logits, one row per label.
  Tensor logits(const Batch& batch) {
    switch (shape_.kind) {
      case Kind::language: return linear(language(batch));
      case Kind::vision: return linear(vision(batch));
      case Kind::convolution: return linear(convolution(batch));
    }
    return {};
  }

 private:
  const Tensor& tensor() { return *next_++; }

  Tensor norm(const Tensor& x) {
    if (observation_ != nullptr) observation_->norms.push_back(observed(x, shape_.eps));
    const std::size_t index = norms_++;
    const Tensor& gain = tensor();
    const auto biased = [&](const Tensor& bias, const Tensor& value) { return value * gain + bias; };
    switch (shape_.norm) {
      case NormKind::layer: {
        const Tensor& bias = tensor();
        if (shape_.frozen.empty()) return normalized(x, shape_.groups, shape_.eps, gain, bias);
        return biased(bias, (x - x.mean(-1, true)) / shape_.frozen[index]);
      }
      case NormKind::rms: return x * torch::rsqrt((x * x).mean(-1, true) + shape_.eps) * gain;
      case NormKind::dyt: {
        const Tensor& bias = tensor();
        return biased(bias, torch::tanh(tensor() * x));
      }
      case NormKind::derf: {
        const Tensor& bias = tensor();
        const Tensor scaled = tensor() * x;
        return biased(bias, torch::erf(scaled + tensor()));
      }
      case NormKind::spherical: break;  // refused by the constructor of Network
    }
    return {};
  }

  /// Normalizes each head's queries or keys (…, depth), where the network does that.
  Tensor of_heads(const Tensor& x) {
    if (!shape_.qk_norm) return x;
    const Tensor& gain = tensor();
    const Tensor& bias = tensor();
    return normalized(x, 1, shape_.eps, gain, bias);
  }

  /// Added to the stream.
  Tensor out(const Tensor& x) { return shape_.peri ? norm(x) : x; }

  Tensor linear(const Tensor& x) {
    const Tensor& matrix = tensor();
    const Tensor& bias = tensor();
    return torch::addmm(bias, x, matrix);
  }

  /// Shapes    stream (rows · length × width)
  Tensor attention(const Tensor& stream, std::int64_t rows, bool causal) {
    const std::int64_t heads = to_int64(shape_.heads);
    const std::int64_t length = stream.size(0) / rows;
    const std::int64_t depth = to_int64(shape_.width) / heads;
    const Tensor parts = linear(stream).view({rows, length, 3, heads, depth}).permute({2, 0, 3, 1, 4});
    const Tensor queries = of_heads(parts[0]);
    const Tensor keys = of_heads(parts[1]);
    Tensor scores =
        torch::matmul(queries * (1.0 / std::sqrt(static_cast<double>(depth))), keys.transpose(-2, -1));
    const Tensor later = torch::ones({length, length}, scores.options().dtype(torch::kBool)).triu(1);
    if (observation_ != nullptr) {
      const Tensor seen = causal ? scores.masked_fill(later, 0.0) : scores;
      observation_->largest_score = std::max(observation_->largest_score, seen.abs().max().item<double>());
    }
    if (causal) scores = scores.masked_fill(later, -std::numeric_limits<float>::infinity());
    const Tensor mixed = torch::matmul(torch::softmax(scores, -1), parts[2]);
    return linear(mixed.transpose(1, 2).reshape({rows * length, heads * depth}));
  }

  Tensor blocks(Tensor stream, std::int64_t rows, bool causal) {
    for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
      stream = stream + out(attention(norm(stream), rows, causal));
      const Tensor wide = torch::gelu(linear(norm(stream)), "tanh");
      stream = stream + out(linear(wide));
    }
    return norm(stream);
  }

  Tensor language(const Batch& batch) {
    const std::int64_t rows = to_int64(batch.rows);
    const Tensor tokens =
        torch::embedding(tensor(), on_device(batch.tokens, {rows, to_int64(batch.tokens.size()) / rows}));
    Tensor stream = tokens + tensor();
    if (shape_.embedding_scalar != 0.0) stream = stream * tensor();
    return blocks(stream.reshape({-1, to_int64(shape_.width)}), rows, true);
  }

  Tensor images(const Batch& batch) const {
    return on_device(batch.pixels.data(),
                     {to_int64(batch.rows), 3, to_int64(shape_.side), to_int64(shape_.side)});
  }

  Tensor vision(const Batch& batch) {
    const std::int64_t rows = to_int64(batch.rows);
    const std::int64_t patch = to_int64(shape_.patch);
    const Tensor cut = images(batch).unfold(2, patch, patch).unfold(3, patch, patch);
    const Tensor patches = linear(cut.permute({0, 2, 3, 1, 4, 5}).reshape({-1, 3 * patch * patch}));
    const std::int64_t width = to_int64(shape_.width);
    const Tensor stream = patches.view({rows, -1, width}) + tensor();
    return blocks(stream.reshape({-1, width}), rows, false).view({rows, -1, width}).mean(1);
  }

  Tensor convolution(const Batch& batch) {
    Tensor x = images(batch).contiguous(at::MemoryFormat::ChannelsLast);
    for (std::int64_t stage = 0; stage < 3; ++stage) {
      const Tensor& kernel = tensor();
      const Tensor& bias = tensor();
      const std::int64_t stride = stage == 0 ? 1 : 2;
      x = torch::conv2d(x, kernel, bias, {stride, stride}, {1, 1});
      if (shape_.between == Between::relu) x = torch::relu(x);
      if (shape_.between == Between::norm) x = norm(x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
    }
    return x.mean({2, 3});
  }

  const Shape& shape_;
  const Tensor* next_;
  Observation* observation_;
  std::size_t norms_ = 0;
};

std::vector<Tensor> leaves(const std::vector<Parameter>& parameters, std::span<const float> values,
                           bool with_gradient) {
  std::vector<Tensor> result;
  for (const Parameter& parameter : parameters) {
    const std::vector<std::int64_t> shape(parameter.shape.begin(), parameter.shape.end());
    result.push_back(on_device(values.data() + parameter.offset, shape).requires_grad_(with_gradient));
  }
  return result;
}

Tensor mean_loss(const Tensor& logits, const Tensor& labels) {
  return torch::cross_entropy_loss(logits, labels);
}

void expect_divides(const char* what, std::size_t part, std::size_t total) {
  if (part == 0 || total % part != 0) {
    throw Error(ErrorCode::Argument,
                fmt::format("grouped network: {} is {}, expected a divisor of {}", what, part, total));
  }
}

}  // namespace

Network::Network(const Shape& shape) : shape_(shape) {
  expect_divides("groups", shape.groups, shape.width);
  if (shape.kind != Kind::convolution) expect_divides("heads", shape.heads, shape.width);
  if (shape.kind == Kind::vision) expect_divides("patch", shape.patch, shape.side);
  if (shape.norm == NormKind::spherical || (shape.norm != NormKind::layer && shape.groups > 1)) {
    throw Error(ErrorCode::Argument,
                fmt::format("grouped network: {} norms in {} groups, expected LayerNorm, or "
                            "RMSNorm, DyT or Derf in one group",
                            to_string(shape.norm), shape.groups));
  }
  const std::size_t norms = shape.layers * (shape.peri ? 4U : 2U) + 1;
  if (!shape.frozen.empty() &&
      (shape.norm != NormKind::layer || shape.groups > 1 || shape.frozen.size() != norms)) {
    throw Error(ErrorCode::Argument,
                fmt::format("grouped network: {} constant denominators of {} norms in {} "
                            "groups, expected one for each of {} LayerNorms in one group",
                            shape.frozen.size(), to_string(shape.norm), shape.groups, norms));
  }
  parameters_ = layout(shape);
  at::globalContext().setDeterministicAlgorithms(true, false);
}

double Network::loss_and_gradient(std::span<const float> values, const Batch& batch,
                                  std::span<float> gradient) const {
  const std::vector<Tensor> tensors = leaves(parameters_, values, true);
  const Tensor labels = on_device(batch.labels, {to_int64(batch.labels.size())});
  const Tensor loss = mean_loss(Pass(shape_, tensors).logits(batch), labels);
  loss.backward();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor piece = tensors[i].grad().cpu().contiguous();
    std::copy_n(piece.data_ptr<float>(), parameters_[i].count,
                gradient.begin() + static_cast<std::ptrdiff_t>(parameters_[i].offset));
  }
  return loss.item<double>();
}

Score Network::score(std::span<const float> values, const Batch& batch) const {
  const torch::NoGradGuard no_gradient;
  const std::vector<Tensor> tensors = leaves(parameters_, values, false);
  const Tensor logits = Pass(shape_, tensors).logits(batch);
  const Tensor labels = on_device(batch.labels, {to_int64(batch.labels.size())});
  return {mean_loss(logits, labels).item<double>(),
          logits.argmax(1).eq(labels).to(torch::kFloat64).mean().item<double>()};
}

Observation Network::observe(std::span<const float> values, const Batch& batch) const {
  const torch::NoGradGuard no_gradient;
  Observation result;
  static_cast<void>(Pass(shape_, leaves(parameters_, values, false), &result).logits(batch));
  std::size_t norm = 0;
  for (const Parameter& parameter : parameters_) {
    const std::string_view name = parameter.name;
    const bool of_heads = name.find(".queries") != name.npos || name.find(".keys") != name.npos;
    if (name.ends_with(".gain") && !of_heads)
      result.norms[norm++].norm = name.substr(0, name.size() - std::string_view(".gain").size());
  }
  return result;
}

std::vector<float> grouped_norm(const NormSpec& spec, std::span<const float> rows) {
  const torch::NoGradGuard no_gradient;
  std::vector<float> gain(spec.width);
  std::vector<float> bias(spec.width);
  for (std::size_t i = 0; i < spec.width; ++i) {
    gain[i] = static_cast<float>(spec.gain_at(i));
    bias[i] = static_cast<float>(spec.bias_at(i));
  }
  const std::int64_t width = to_int64(spec.width);
  const Tensor y = normalized(on_device(rows.data(), {to_int64(rows.size()) / width, width}), spec.groups,
                              spec.eps, on_device(gain.data(), {width}), on_device(bias.data(), {width}))
                       .cpu()
                       .contiguous();
  return {y.data_ptr<float>(), y.data_ptr<float>() + y.numel()};
}

}  // namespace normscope::lab::grouped
