#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/selectability/logits.hpp>
#include <normscope/signature/outputs.hpp>

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

  // These describe an ellipse taken from outputs:
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

/// The affine subspace in which rows of logits lie, with their mean over the tokens subtracted.
///
/// Shapes    middle (tokens); basis (tokens × rank), orthonormal columns
struct Subspace {
  std::size_t tokens = 0;
  std::size_t rank = 0;
  std::vector<double> middle{};  ///< mean of the rows that were looked at
  std::vector<double> basis{};
  /// Singular values of the matrix of these rows, with their mean subtracted, over √rows: descending, down to
  /// what float64 resolves.
  std::vector<double> singular_values{};
  double noise = 0.0;    ///< size of a singular value due to rounding; smaller ones do not count in `rank`
  std::size_t rows = 0;  ///< looked at, spread over all
  bool fills = false;    ///< nothing is left over: rank = tokens − 1, or one less than the rows looked at
};

/// The subspace, from 512 rows or twice its dimension if that is more, evenly spread over all rows. Its
/// dimension is `rank` if given, otherwise the number of singular values that exceed what rounding explains.
/// State `rank` if outputs have other noise than rounding.
///
/// Errors    as `Outputs::whole_row`; Argument for ids or fewer than 3 rows; Cancelled
///
/// Cost      m tokens min(m, tokens) for m rows
[[nodiscard]] Subspace find_subspace(const Outputs& outputs, unsigned threads = 0,
                                     const Progress& progress = {}, std::size_t rank = 0);

/// Number of parameters of an ellipse with `rank` axes.
[[nodiscard]] constexpr std::size_t unknowns(std::size_t rank) { return rank * (rank + 3) / 2; }

struct ExtractOptions {
  unsigned threads = 0;
  Progress progress{};
  /// File in which the state of the fit is saved every 30 s and when it is cancelled, and from which it
  /// continues; none if empty. Only the first member of a team reads and writes it.
  std::filesystem::path resume{};
  /// Processes that share the rows, at most 64; the result and the saved state have the same bits whatever
  /// their number. Each needs memory for its part of the rows' coordinates.
  const Team* team = &alone();
};

struct Extraction {
  /// Empty if no ellipsoid fits, because the model has no final norm or noise hides it.
  std::optional<Ellipse> ellipse{};
  std::size_t rows = 0;
  std::size_t distinct = 0;  ///< rows
  std::size_t rounds = 0;
  double surface = 0.0;  ///< root mean square of |u| − 1
  /// `surface` divided by 1/√(2 rank), its value for Gaussian points: near 0 on an ellipse, near 1 without a
  /// norm.
  double relative_surface = 0.0;
};

/// `relative_surface` up to which rows count as lying on an ellipse.
inline constexpr double on_an_ellipse = 0.25;

/// The ellipse on which rows lie, estimated from the rows alone: their coordinates in the subspace are
/// whitened by their covariance, then the quadric xᵀAx + v·x + k = 0 with tr A = rank is fitted by
/// preconditioned conjugate gradients.
///
/// Errors    as `find_subspace`; Argument if rows or tokens are too few: fewer distinct rows than
///           `unknowns`, or a subspace that fills the vocabulary; Cancelled; Format, Argument for a state
///           that is damaged or of other outputs
///
/// Accuracy  `Ellipse::errors`, estimated (tests: Extract.FindsTheAxesOfTheWeights,
///           Extract.ErrorsAreNotUnderstated)
///
/// Cost      4 rows rank² per iteration in float32, about 60 iterations for twice as many rows as unknowns:
///           O(rank⁴); memory 8 rows rank bytes and a block of rows. Outputs are read twice
[[nodiscard]] Extraction extract(const Outputs& outputs, const Subspace& subspace,
                                 const ExtractOptions& options = {});

}  // namespace normscope::signature
