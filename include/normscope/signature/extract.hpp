#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include <normscope/core/progress.hpp>
#include <normscope/signature/ellipse.hpp>
#include <normscope/signature/outputs.hpp>

namespace normscope::signature {

/// The affine subspace that rows lie in, logits taken with mean 0 over the tokens.
/// Shapes    middle (tokens); basis (tokens × rank), orthonormal columns
struct Subspace {
  std::size_t tokens = 0;
  std::size_t rank = 0;
  std::vector<double> middle{};  ///< mean of the rows that were looked at
  std::vector<double> basis{};
  /// Of the rows looked at, their mean subtracted, over √rows: descending, as far as float64 sees them.
  std::vector<double> singular_values{};
  double noise = 0.0;    ///< what rounding makes a singular value; smaller ones are not counted in `rank`
  std::size_t rows = 0;  ///< looked at, spread over all
  bool fills = false;    ///< nothing is left over: rank = tokens − 1, or one less than the rows looked at
};

/// The subspace, from 512 rows or as many as are twice its dimension, evenly spread over all. Its dimension
/// is `rank`, or where singular values exceed what rounding explains; noise of another kind has to be stated
/// by it. Errors    as `Outputs::whole_row`; Argument for ids or fewer than 3 rows; Cancelled Cost      with
/// m rows: m tokens min(m, tokens)
[[nodiscard]] Subspace find_subspace(const Outputs& outputs, unsigned threads = 0,
                                     const Progress& progress = {}, std::size_t rank = 0);

/// Numbers that determine an ellipse of so many axes.
[[nodiscard]] constexpr std::size_t unknowns(std::size_t rank) { return rank * (rank + 3) / 2; }

struct ExtractOptions {
  unsigned threads = 0;
  Progress progress{};
  /// File for the state of the fit, which is saved every 30 s and at cancelling, and from which it goes on;
  /// none if empty.
  std::filesystem::path resume{};
};

struct Extraction {
  /// Empty where no ellipsoid fits: there is no norm at the end, or noise hides it.
  std::optional<Ellipse> ellipse{};
  std::size_t rows = 0;
  std::size_t distinct = 0;  ///< rows
  std::size_t rounds = 0;
  double surface = 0.0;  ///< root mean square of |u| − 1
  /// The same over 1/√(2 rank), which rows of a Gaussian cloud have: near 0 on an ellipse, near 1 without a
  /// norm.
  double relative_surface = 0.0;
};

/// `relative_surface` up to which rows count as lying on an ellipse.
inline constexpr double on_an_ellipse = 0.25;

/// The ellipse that rows lie on, from the rows alone: coordinates in the subspace, whitened by the rows' own
/// covariance, then the quadric xᵀAx + v·x + k = 0, tr A = rank, by preconditioned conjugate gradients.
///
/// Errors    as `find_subspace`; Argument where rows or tokens are too few: fewer distinct rows than
///           `unknowns`, or a subspace that fills the vocabulary; Cancelled; Format, Argument for a state
///           that is damaged or of other outputs
/// Accuracy  `Ellipse::errors`, estimated (tests: Extract.FindsTheAxesOfTheWeights,
///           Extract.ErrorsAreNotUnderstated)
/// Cost      4 rows rank² a round in float32, about 60 rounds for twice as many rows as unknowns: O(rank⁴);
///           memory 8 rows rank bytes beside a block of rows. Outputs are read twice
[[nodiscard]] Extraction extract(const Outputs& outputs, const Subspace& subspace,
                                 const ExtractOptions& options = {});

}  // namespace normscope::signature
