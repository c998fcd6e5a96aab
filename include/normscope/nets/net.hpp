#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

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

// A net as a safetensors file, for any safetensors reader:
//   metadata  "normscope.lnnet": one JSON object
//     {"schema": "normscope.lnnet/1",
//      "precision": "float64" or "double-double",
//      "layers": [{"count", "in", "out", "activation",
//                  "norm": {"kind", "groups", "eps", "gain": bool, "bias": bool}}, …],
//      "classes": [label of each output, …]}
//     An entry of "layers" stands for `count` layers in a row that differ in their numbers only; "norm" is
//     there where the activation is "norm"; an empty "classes" means 0, 1, …; without "precision" it is
//     float64.
//   tensors   float64, i the index of the entry:
//     layers.i.weight (count, out, in)   layers.i.bias (count, out)
//     layers.i.norm_gain (count, out) and layers.i.norm_bias (count, out) where the norm has them
//     head.weight (outputs, width)       head.bias (outputs)
//     In double-double each weight and bias is the sum of this and of its weight_low, bias_low, and the
//     net is to be evaluated with 106 bits or more.
//   So 60,000 layers of three neurons are four tensors and the head.

/// Writes `net`, atomically. `load_net` returns the same net, bit by bit.
///
/// Errors    Shape, Argument: see `validate`; Io
void save_net(const std::filesystem::path& path, const Net& net);

/// Reads a net. Every name, count and number is checked, and tensors without a use are an error.
///
/// Errors    Io, Format, Shape, Argument; messages name the file
[[nodiscard]] Net load_net(const std::filesystem::path& path);

}  // namespace normscope::nets
