#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/signature/ellipse.hpp>
#include <normscope/signature/outputs.hpp>

namespace normscope::signature {

/// The affine subspace in which rows of logits lie, with their mean over the tokens subtracted.
///
/// Shapes    middle (tokens); basis (tokens × rank), orthonormal columns
struct Subspace {
  std::size_t tokens = 0;
  std::size_t rank = 0;
  std::vector<double> middle{};  ///< mean of the rows that were looked at
  std::vector<double> basis{};
  /// Of the matrix of these rows, with their mean subtracted, over √rows: descending, down to what float64
  /// resolves.
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
  /// The same divided by 1/√(2 rank), its value for Gaussian points: near 0 on an ellipse, near 1 without a
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
