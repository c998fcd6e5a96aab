#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/core/view.hpp>
#include <normscope/selectability/logits.hpp>

namespace normscope::signature {

/// The ellipsoid on which the logits of one model lie, with their mean over the tokens subtracted:
/// centre + axes diag(semi_axes) u with |u| = 1.
///
/// Shapes    centre (tokens); axes (tokens × rank), orthonormal columns; semi_axes, errors (rank)
struct Ellipse {
  std::size_t tokens = 0;
  std::size_t rank = 0;
  std::vector<double> centre{};
  std::vector<double> axes{};
  std::vector<double> semi_axes{};  ///< descending
  std::vector<double> errors{};     ///< stated relative error of each semi-axis, not proved
  /// Whether the points fill the ellipsoid: it has fewer axes than u has dimensions, for example because the
  /// vocabulary is not larger than the width.
  bool filled = false;

  // Of an ellipse taken from outputs:
  std::size_t rows = 0;  ///< of outputs, 0 for an ellipse from weights
  double surface = 0.0;  ///< root mean square over these rows of |u| − 1
  double off = 0.0;      ///< root mean square distance of a logit from the subspace
  Dtype precision = Dtype::F64;
  std::size_t rounds = 0;                       ///< of conjugate gradients
  double least_ritz = 0.0, largest_ritz = 0.0;  ///< of the preconditioned normal matrix, as far as seen

  [[nodiscard]] MatrixView<const double> view() const { return {axes.data(), tokens, rank}; }
  /// Axes whose stated error exceeds `drowning`.
  [[nodiscard]] std::size_t drowned() const;
};

/// Relative error from which an axis counts as drowned in noise.
inline constexpr double drowning = 0.1;
/// Singular values below this times the largest are left out.
inline constexpr double negligible = 1e-7;

/// The ellipse that follows from the weights of a model.
///
/// Cost      4 tokens width² on `threads` threads
[[nodiscard]] Ellipse ellipse_of(const selectability::Logits& logits, unsigned threads = 0);

/// Writes the ellipse as one safetensors file, atomically; its numbers are in the metadata
/// ("normscope.ellipse/1").
///
/// Errors    Io
void write_ellipse(const std::filesystem::path& path, const Ellipse& ellipse);
/// The ellipse in a file; empty if the file is something else.
///
/// Errors    Io; Format for a damaged one: sizes that disagree, numbers that are not finite, semi-axes that
///           are not positive and descending, axes that are not orthonormal to 1e-6
[[nodiscard]] std::optional<Ellipse> read_ellipse(const std::filesystem::path& path);

}  // namespace normscope::signature
