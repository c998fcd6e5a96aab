#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/nets/net.hpp>

/// Forward and backward pass over a block of rows. Inside a block everything is feature-major: feature i of
/// row r is at i · block_rows + r, so that every loop runs along the rows.
namespace normscope::nets::detail {

/// Rows of a full block, and the multiple to which the last block is padded.
inline constexpr std::size_t block_rows = 128;
inline constexpr std::size_t row_multiple = 16;

/// A linear map and the function after it; offsets are relative to the first parameter.
struct PassLayer {
  std::size_t in = 0;
  std::size_t out = 0;
  Activation activation = Activation::none;
  NormKind norm = NormKind::layer;
  std::size_t groups = 1;
  double eps = 0.0;
  bool affine = false;     ///< the norm has a trainable gain and bias
  std::size_t weight = 0;  ///< out × in, row-major
  std::size_t bias = 0;
  std::size_t gain = 0;
  std::size_t shift = 0;

  /// By which the sum of the squares of a group is divided.
  [[nodiscard]] double squared_radius() const {
    return NormSpec{.kind = norm, .width = out, .groups = groups}.squared_radius();
  }
};

/// A network; one output means the logistic loss, several the softmax cross-entropy.
struct Pass {
  std::vector<PassLayer> layers;
  std::size_t parameters = 0;  ///< rounded up to row_multiple
  [[nodiscard]] std::size_t outputs() const { return layers.back().out; }
};

/// Buffers of one thread for one block.
template <typename T>
struct Workspace {
  explicit Workspace(const Pass& pass);

  std::vector<std::vector<T>> core;   ///< per layer: the norm before gain, or the input of the activation
  std::vector<std::vector<T>> value;  ///< per layer: its output, if that is not `core` itself
  std::vector<std::vector<T>> scale;  ///< per layer: 1/s of each group
  std::vector<T> delta;
  std::vector<T> next_delta;
  std::vector<T> transposed;
};

/// `rows` samples; `x` and the weights are padded to a multiple of `row_multiple` with rows of weight 0.
template <typename T>
struct Block {
  const T* x = nullptr;
  const std::uint32_t* labels = nullptr;
  const T* weights = nullptr;  ///< weight of each row in the mean
  std::size_t rows = 0;
};

/// Sums over the rows of a block.
struct BlockLoss {
  double loss = 0.0;  ///< weighted
  std::size_t correct = 0;
};

/// Loss of a block; adds the gradient to `gradient` unless that is null.
BlockLoss run_block(const Pass& pass, const double* parameters, const Block<double>& block,
                    Workspace<double>& work, double* gradient);
BlockLoss run_block(const Pass& pass, const float* parameters, const Block<float>& block,
                    Workspace<float>& work, float* gradient);

/// Parameters of an optimizer step.
struct Update {
  bool adam = true;
  double rate = 0.0;
  double momentum = 0.0;
  double beta1 = 0.0;
  double beta2 = 0.0;
  double eps = 0.0;
  double first_correction = 1.0;   ///< 1 − beta1^t
  double second_correction = 1.0;  ///< 1 − beta2^t
};

/// Adds `count` gradients of `stride` parameters in order, and updates the parameters [begin, end) by the
/// sum.
///
/// Requires  begin and end multiples of row_multiple
void update(const Update& how, const double* gradients, std::size_t count, std::size_t stride,
            std::size_t begin, std::size_t end, double* parameters, double* first, double* second);
void update(const Update& how, const float* gradients, std::size_t count, std::size_t stride,
            std::size_t begin, std::size_t end, float* parameters, float* first, float* second);

}  // namespace normscope::nets::detail
