#include "layout.hpp"

#include <cmath>
#include <utility>

namespace normscope::lab::grouped {
namespace {

/// Fan-in of embeddings, which are not multiplied with an input.
constexpr double embedding_deviation = 0.02;
constexpr std::size_t image_channels = 3;
constexpr std::size_t kernel = 9;

class Tensors {
 public:
  void embedding(const std::string& name, std::size_t rows, std::size_t width) {
    add(name, {rows, width}, 0.0, embedding_deviation, false);
  }
  void norm(const std::string& name, std::size_t width, NormKind kind, double alpha) {
    add(name + ".gain", {width}, 1.0, 0.0, false);
    if (kind == NormKind::rms) return;
    add(name + ".bias", {width}, 0.0, 0.0, false);
    if (is_elementwise(kind)) scalar(name + ".alpha", alpha);
    if (facts(kind).has_shift) scalar(name + ".shift", 0.0);
  }
  void scalar(const std::string& name, double value) { add(name, {1}, value, 0.0, false); }
  void linear(const std::string& name, std::size_t in, std::size_t out, double scale = 1.0) {
    add(name + ".weight", {in, out}, 0.0, scale / std::sqrt(static_cast<double>(in)), true);
    add(name + ".bias", {out}, 0.0, 0.0, false);
  }
  void convolution(const std::string& name, std::size_t in, std::size_t out) {
    add(name + ".weight", {out, in, 3, 3}, 0.0, 1.0 / std::sqrt(static_cast<double>(kernel * in)), true);
    add(name + ".bias", {out}, 0.0, 0.0, false);
  }

  std::vector<Parameter> all{};

 private:
  void add(std::string name, std::vector<std::uint64_t> shape, double mean, double deviation, bool decays) {
    Parameter tensor{.name = std::move(name),
                     .shape = std::move(shape),
                     .offset = total_count(all),
                     .count = 1,
                     .initial_mean = mean,
                     .initial_deviation = deviation,
                     .decays = decays};
    for (const std::uint64_t extent : tensor.shape) tensor.count *= extent;
    all.push_back(std::move(tensor));
  }
};

void blocks(const Shape& shape, Tensors& tensors) {
  // Each block adds to the residual twice; this factor keeps the deviation of the sum at that of one term.
  const double residual = 1.0 / std::sqrt(2.0 * static_cast<double>(shape.layers));
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    const std::string name = "block" + std::to_string(layer);
    tensors.norm(name + ".norm1", shape.width, shape.norm, shape.alpha_attention);
    tensors.linear(name + ".attention", shape.width, 3 * shape.width);
    if (shape.qk_norm) {
      tensors.norm(name + ".queries", shape.width / shape.heads, NormKind::layer, 0.0);
      tensors.norm(name + ".keys", shape.width / shape.heads, NormKind::layer, 0.0);
    }
    tensors.linear(name + ".merge", shape.width, shape.width, residual);
    if (shape.peri) tensors.norm(name + ".norm1_out", shape.width, shape.norm, shape.alpha_attention);
    tensors.norm(name + ".norm2", shape.width, shape.norm, shape.alpha_other);
    tensors.linear(name + ".widen", shape.width, 4 * shape.width);
    tensors.linear(name + ".narrow", 4 * shape.width, shape.width, residual);
    if (shape.peri) tensors.norm(name + ".norm2_out", shape.width, shape.norm, shape.alpha_other);
  }
  tensors.norm("norm", shape.width, shape.norm, shape.alpha_other);
}

}  // namespace

std::vector<Parameter> layout(const Shape& shape) {
  Tensors tensors;
  if (shape.kind == Kind::convolution) {
    for (std::size_t stage = 0; stage < 3; ++stage) {
      const std::string name = "stage" + std::to_string(stage);
      tensors.convolution(name + ".convolution", stage == 0 ? image_channels : shape.width, shape.width);
      if (shape.between == Between::norm)
        tensors.norm(name + ".norm", shape.width, shape.norm, shape.alpha_other);
    }
  } else {
    if (shape.kind == Kind::language) {
      tensors.embedding("tokens", shape.classes, shape.width);
      tensors.embedding("places", shape.length, shape.width);
      if (shape.embedding_scalar != 0.0) tensors.scalar("scalar", shape.embedding_scalar);
    } else {
      const std::size_t patches = (shape.side / shape.patch) * (shape.side / shape.patch);
      tensors.linear("patches", image_channels * shape.patch * shape.patch, shape.width);
      tensors.embedding("places", patches, shape.width);
    }
    blocks(shape, tensors);
  }
  tensors.linear("head", shape.width, shape.classes);
  return std::move(tensors.all);
}

}  // namespace normscope::lab::grouped
