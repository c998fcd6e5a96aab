#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/lnnet/net.hpp>

/// One pass forward and back through a block of rows. Inside a block everything is feature-major:
/// feature i of row r stands at i · block_rows + r, so that every loop runs along the rows.
namespace normscope::lnnet::detail {

/// Rows of a full block, and the multiple that the last block's rows are filled up to.
inline constexpr std::size_t block_rows = 128;
inline constexpr std::size_t row_multiple = 16;

/// A linear map and what follows it; offsets count from the first parameter.
struct PassLayer {
  std::size_t in = 0;
  std::size_t out = 0;
  Activation activation = Activation::none;
  NormKind norm = NormKind::layer;
  std::size_t groups = 1;
  double eps = 0.0;
  bool affine = false;     ///< the norm has a gain and a bias to learn
  std::size_t weight = 0;  ///< out × in, row-major
  std::size_t bias = 0;
  std::size_t gain = 0;
  std::size_t shift = 0;
};

/// A whole network; one output means the logistic loss, more the softmax cross-entropy.
struct Pass {
  std::vector<PassLayer> layers;
  std::size_t parameters = 0;  ///< rounded up to row_multiple
  [[nodiscard]] std::size_t outputs() const { return layers.back().out; }
};

/// Buffers of one thread's work on one block.
template <typename T>
struct Workspace {
  explicit Workspace(const Pass& pass);

  std::vector<std::vector<T>> core;   ///< a layer: the norm before gain, or what the activation reads
  std::vector<std::vector<T>> value;  ///< a layer: its output, where that is not `core` itself
  std::vector<std::vector<T>> scale;  ///< a layer: 1/s of each group
  std::vector<T> delta;
  std::vector<T> next_delta;
  std::vector<T> transposed;
};

/// `rows` samples; `x` and the weights are filled up to a multiple of `row_multiple` with rows of weight 0.
template <typename T>
struct Block {
  const T* x = nullptr;
  const std::uint32_t* labels = nullptr;
  const T* weights = nullptr;  ///< each row's share of the mean
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

/// What an update needs to know of its step.
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

/// Adds up `count` gradients of `stride` parameters in their order, and moves the parameters
/// [begin, end) by the sum. Requires  begin and end multiples of row_multiple
void update(const Update& how, const double* gradients, std::size_t count, std::size_t stride,
            std::size_t begin, std::size_t end, double* parameters, double* first, double* second);
void update(const Update& how, const float* gradients, std::size_t count, std::size_t stride,
            std::size_t begin, std::size_t end, float* parameters, float* first, float* second);

}  // namespace normscope::lnnet::detail
