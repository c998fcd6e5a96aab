#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <normscope/core/norm_spec.hpp>

/// LN-Nets: linear maps with normalization as the only nonlinearity; other activations are for comparison.
///   f(x) = head ∘ a_L ∘ (W_L · + b_L) ∘ … ∘ a_1 ∘ (W_1 x + b_1)
///
/// Source    [Ni et al. 2024, LN-Net]
namespace normscope::nets {

/// The function after a layer's linear map: the layer's `norm`, max(x, 0), x Φ(x), or the identity.
enum class Activation : std::uint8_t { norm, relu, gelu, none };

/// "norm", "relu", "gelu" or "none".
[[nodiscard]] std::string_view to_string(Activation activation);
/// The activation of that name.
///
/// Errors    Argument if there is none
[[nodiscard]] Activation activation(std::string_view name);

/// The type of a net's numbers and of its evaluation: doubles, or sums of two doubles.
enum class Precision : std::uint8_t { float64, double_double };

/// "float64" or "double-double".
[[nodiscard]] std::string_view to_string(Precision precision);
/// The precision of that name.
///
/// Errors    Argument if there is none
[[nodiscard]] Precision precision(std::string_view name);

/// y = activation(W x + b), W = weight + weight_low and b = bias + bias_low.
///
/// Shapes    weight (out, in), row-major; bias (out); the low parts likewise in double-double, else empty
struct Layer {
  std::size_t in = 0;
  std::size_t out = 0;
  std::vector<double> weight{};
  std::vector<double> bias{};
  Activation activation = Activation::none;
  NormSpec norm{};  ///< of width `out`; used only if activation is norm
  std::vector<double> weight_low{};
  std::vector<double> bias_low{};
};

/// Layers and a linear head; the class of a row is the largest output of the head, the first one among
/// equals.
struct Net {
  std::vector<Layer> layers{};
  Layer head{};                         ///< without activation
  std::vector<std::int64_t> classes{};  ///< label of each of the head's outputs; empty: 0, 1, …
  Precision precision = Precision::float64;

  /// Number of features the net reads.
  [[nodiscard]] std::size_t in() const { return layers.empty() ? head.in : layers.front().in; }
  /// Outputs of the head.
  [[nodiscard]] std::size_t out() const { return head.out; }
};

/// Throws unless the sizes of consecutive layers match, all numbers are finite, and the head is linear with
/// as many classes as outputs. Low parts require double-double and are each less than half a unit of the high
/// part's last place; GELU requires float64.
///
/// Errors    Shape, Argument; the message names the layer
void validate(const Net& net);

}  // namespace normscope::nets
