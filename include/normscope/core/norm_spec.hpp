#pragma once

#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include <normscope/core/norm_kind.hpp>
#include <normscope/core/view.hpp>

namespace normscope {

/// One normalization layer, with its gain and bias in containers of type `Values`: `NormSpec` owns them in
/// double, `norm::Layer<T>` views those of the kernels' precision.
///
/// Shapes    gain, bias (width), or empty for all ones and all zeros
template <typename Values>
struct BasicNorm {
  NormKind kind = NormKind::layer;
  std::size_t width = 0;
  std::size_t groups = 1;  ///< 1 for elementwise kinds
  double eps = 1e-5;       ///< unused by elementwise kinds
  Values gain{};
  Values bias{};
  double alpha = 1.0;  ///< α of elementwise kinds
  double shift = 0.0;  ///< s of derf

  /// Gain of feature `index`, 1 without a gain.
  [[nodiscard]] double gain_at(std::size_t index) const {
    return gain.empty() ? 1.0 : static_cast<double>(gain[index]);
  }
  [[nodiscard]] double bias_at(std::size_t index) const {
    return bias.empty() ? 0.0 : static_cast<double>(bias[index]);
  }
  /// Whether every output depends on the input of its own feature alone.
  [[nodiscard]] bool elementwise() const { return is_elementwise(kind); }
  [[nodiscard]] NormEffect effect() const { return effect_of(kind, eps, block_width()); }
  /// Number of entries normalized together; 1 for elementwise kinds.
  [[nodiscard]] std::size_t block_width() const { return elementwise() ? 1 : width / groups; }
  /// Whether the mean is subtracted before scaling.
  [[nodiscard]] bool centers() const { return facts(kind).centers; }
  /// The square of `radius`: `eps` is added to the squared length divided by this.
  [[nodiscard]] double squared_radius() const {
    return facts(kind).divisor == Divisor::length ? 1.0 : static_cast<double>(block_width());
  }
  /// Radius of the sphere that `scale` fills: sqrt of the block width, or 1 for spherical and, as the largest
  /// |tanh| and |erf|, for elementwise kinds.
  [[nodiscard]] double radius() const { return std::sqrt(squared_radius()); }
};

using NormSpec = BasicNorm<std::vector<double>>;

/// Throws unless `spec` describes a layer: width >= 1, groups >= 1 and dividing width (1 for elementwise
/// kinds), eps >= 0 and finite, alpha and shift finite and, where the kind has none, 1 and 0, gain and bias
/// absent or of `width` finite entries.
///
/// Errors    Argument, Shape
void validate(const NormSpec& spec);

/// As above, and that `x` and `y` have equally many rows of `spec.width`; `who` begins the message.
///
/// Errors    Argument, Shape
void validate(std::string_view who, const NormSpec& spec, MatrixView<const double> x,
              MatrixView<const double> y);

/// Throws if `spec` is elementwise, for functions that are defined for normalizing kinds only; `who` begins
/// the message.
///
/// Errors    Argument
void require_normalizing(std::string_view who, const NormSpec& spec);

}  // namespace normscope
