#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/progress.hpp>
#include <normscope/core/view.hpp>

/// LN-Nets: linear maps with normalization as the only nonlinearity, and for comparison with others.
///   f(x) = head ∘ a_L ∘ (W_L · + b_L) ∘ … ∘ a_1 ∘ (W_1 x + b_1)
///
/// Source    [Ni et al. 2024, LN-Net]
namespace normscope::lnnet {

/// What follows a layer's linear map: the layer's `norm`, max(x, 0), x Φ(x), or nothing.
enum class Activation : std::uint8_t { norm, relu, gelu, none };

/// "norm", "relu", "gelu" or "none".
[[nodiscard]] std::string_view to_string(Activation activation);
/// The activation of that name.
/// Errors    Argument if there is none
[[nodiscard]] Activation activation(std::string_view name);

/// y = activation(W x + b).
/// Shapes    weight (out, in), row-major; bias (out)
struct Layer {
  std::size_t in = 0;
  std::size_t out = 0;
  std::vector<double> weight{};
  std::vector<double> bias{};
  Activation activation = Activation::none;
  NormSpec norm{};  ///< of width `out`; read only where activation is norm
};

/// Layers and a linear head; a row's class is the head's largest output, the first one of equals.
struct Net {
  std::vector<Layer> layers{};
  Layer head{};                         ///< without activation
  std::vector<std::int64_t> classes{};  ///< label of each of the head's outputs; empty: 0, 1, …

  /// Features of a row that the net reads.
  [[nodiscard]] std::size_t in() const { return layers.empty() ? head.in : layers.front().in; }
  /// Outputs of the head.
  [[nodiscard]] std::size_t out() const { return head.out; }
};

/// Throws unless every layer reads what the one before it writes, has its shapes and finite numbers,
/// and the head is linear with as many classes as outputs.
/// Errors    Shape, Argument; the message names the layer
void validate(const Net& net);

/// The head's outputs for each row of `x`.
///
/// Sums run in index order and start from the bias. A norm is its plain definition in one pass: mean,
/// deviations, mean square, division; a block whose computed deviations are all zero gives the bias.
///
/// Shapes    x (rows, net.in()) → rows × net.out()
/// Errors    Shape, Argument: see `validate`, and when x is not net.in() wide; Cancelled
/// Accuracy  no fused operations, and the same bits for every number of threads and rows
///           (test: Net.RowsAndThreadsDoNotChangeBits); each layer is norm::forward to 1e-13 for entries
///           of comparable size (test: Net.LayersAreTheNorm)
/// Cost      one multiplication a weight and row
[[nodiscard]] std::vector<double> evaluate(const Net& net, MatrixView<const double> x, unsigned threads = 0,
                                           const Progress& progress = {});

/// The class of each row: classes[argmax evaluate].
[[nodiscard]] std::vector<std::int64_t> labels(const Net& net, MatrixView<const double> x,
                                               unsigned threads = 0, const Progress& progress = {});

/// What each layer gives, before the head: the l-th entry has rows × layers[l].out values.
[[nodiscard]] std::vector<std::vector<double>> trace(const Net& net, MatrixView<const double> x,
                                                     unsigned threads = 0);

}  // namespace normscope::lnnet
