#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope {

/// The family a normalization layer belongs to. With x a row of `width` N, Π x = x − mean(x):
///   layer      y = g · Πx / sqrt(|Πx|²/N + eps) + b           LayerNorm
///   rms        y = g · x  / sqrt(|x|²/N + eps) + b            RMSNorm
///   spherical  y = g · x  / sqrt(|x|² + eps) + b              projection onto the unit sphere
/// With `groups` k > 1 the row is split into k consecutive blocks of N/k entries, each normalized separately
/// (LN-G); gain and bias still have N entries.
///
/// Source    [Riechers 2024, eq. 6]; [Ni et al. 2024, LN-G]; [Winsor 2022, u_eps]
enum class NormKind { layer, rms, spherical };

/// "layer", "rms" or "spherical".
[[nodiscard]] std::string_view to_string(NormKind kind);

/// The kind of that name.
/// Errors    Argument if `name` is none of the three
[[nodiscard]] NormKind norm_kind(std::string_view name);

/// One normalization layer.
/// Shapes    gain, bias (width), or empty for all ones and all zeros
struct NormSpec {
  NormKind kind = NormKind::layer;
  std::size_t width = 0;
  std::size_t groups = 1;
  double eps = 1e-5;
  std::vector<double> gain{};
  std::vector<double> bias{};

  /// Gain of feature `index`, 1 without a gain.
  [[nodiscard]] double gain_at(std::size_t index) const { return gain.empty() ? 1.0 : gain[index]; }
  [[nodiscard]] double bias_at(std::size_t index) const { return bias.empty() ? 0.0 : bias[index]; }
  /// Number of entries normalized together.
  [[nodiscard]] std::size_t block_width() const { return width / groups; }
  /// Whether the mean is subtracted before scaling.
  [[nodiscard]] bool centers() const { return kind == NormKind::layer; }
  /// Radius of the sphere that `scale` fills: sqrt of the block width, or 1 for spherical.
  [[nodiscard]] double radius() const;
};

/// Throws unless `spec` describes a layer: width >= 1, groups >= 1 and dividing width,
/// eps >= 0 and finite, gain and bias absent or of `width` finite entries.
/// Errors    Argument, Shape
void validate(const NormSpec& spec);

/// As above, and that `x` and `y` have equally many rows of `spec.width`; `who` begins the message.
/// Errors    Argument, Shape
void validate(std::string_view who, const NormSpec& spec, MatrixView<const double> x,
              MatrixView<const double> y);

}  // namespace normscope
