#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/progress.hpp>
#include <normscope/core/view.hpp>

namespace normscope::certificates {

/// The claim "along `direction` the row `index` scores higher than every other row by at least `least`",
/// where the score of row x_j is directionᵀ x_j.
struct LeadClaim {
  std::size_t index = 0;
  std::vector<double> direction{};
  std::vector<double> rest{};   ///< of each entry, what its rounding to a double leaves; empty if nothing
  std::vector<double> error{};  ///< of each entry with its rest; empty if it is exact
  double least = 0.0;
};

/// For each claim, a lower bound in exact arithmetic of the smallest difference of scores; a bound below
/// `least` is within rounding of the true value. One product in float64 with an error bound; rows that it
/// does not decide are computed in twice the precision.
///
/// Errors    Cancelled
///
/// Cost      2 n width operations per claim
[[nodiscard]] std::vector<double> proved_leads(MatrixView<const double> rows,
                                               const std::vector<LeadClaim>& claims, unsigned threads,
                                               const Progress& progress);

}  // namespace normscope::certificates
