#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>

/// How well classes are separated, as they are and after the best linear map. Rows with the same label are a
/// class. Scatter matrices are never formed; all computations use the centred rows. Results are bitwise
/// independent of `threads` (test: Scatter.ThreadsDoNotChangeABit).
namespace normscope::nets {

/// SS = Σ |x − mean|², the sum of squares of the rows of `x`; infinite beyond the largest double.
[[nodiscard]] double sum_of_squares(MatrixView<const double> x);

/// SSR = Σ_classes SS(class) / SS(all), in [0, 1]: 0 when every class is one point, 1 when all class means
/// agree; NaN when all rows are the same point.
///
/// Source    [Ni et al. 2024, SSR]
///
/// Shapes    x (rows, width), labels (rows)
///
/// Errors    Shape; Argument for fewer than two classes or an entry that is not finite
///
/// Accuracy  multiplying x by a power of two does not change a digit, to the ends of a double's range
///           (test: Scatter.ValuesOfAnySizeGiveTheSameDigits)
[[nodiscard]] double sum_of_squares_ratio(MatrixView<const double> x, std::span<const std::size_t> labels,
                                          unsigned threads = 0);

struct LinearRatio {
  double ratio = 0.0;  ///< LSSR; NaN when all rows are the same point
  /// Unit w, in the range of the total scatter where features vary; entries below a double's range are 0.
  std::vector<double> direction{};
  std::size_t rank = 0;         ///< of the total scatter
  double rank_tolerance = 0.0;  ///< pivots below this part of the largest count as zero
};

/// LSSR: the least SSR that any linear map can give, and the direction w whose projection wᵀx gives it. It is
/// the smallest eigenvalue of (S_W, S_T), within-class against total scatter, on the range of S_T; for two
/// classes 1 − (m₁m₂/m) Δᵀ S_T⁺ Δ with Δ the difference of the class means and w ∝ S_T⁺ Δ. The features are
/// first scaled by powers of two to similar size, which changes only the rounding. The deviations within
/// classes and the class means are triangularized separately, S_T = R_WᵀR_W + R_BᵀR_B, and a pivoted QR of
/// both triangles gives the range and the answer.
///
/// Source    [Ni et al. 2024, LSSR]; [Fisher 1936]
///
/// Shapes    x (rows, width), labels (rows)
///
/// Errors    as `sum_of_squares_ratio`; Cancelled
///
/// Accuracy  the ratio is that of `direction` to 1e-13, and at most 1e-12 + (32 u κ)² above the least one,
///           κ < 1e12 the condition of the centred features scaled to length 1
///           (tests: Scatter.LinearRatioIsTheSmallestEigenvalue,
///           Scatter.LinearRatioOfIllConditionedFeatures, Scatter.ValuesOfAnySizeGiveTheSameDigits)
///
/// Cost      O((rows + classes) width²), in blocks on all threads, and O(width³) on one
[[nodiscard]] LinearRatio linear_ratio(MatrixView<const double> x, std::span<const std::size_t> labels,
                                       unsigned threads = 0, const Progress& progress = {});

}  // namespace normscope::nets
