#pragma once

#include <cstddef>
#include <functional>
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
  /// More than 0: a lead that is at least this much proves the claim, by a bound of its rounding.
  double least = 0.0;
};

/// Decides whether claim `claim` leads row `row` as claimed, without rounding.
using DecideLead = std::function<bool(std::size_t claim, std::size_t row)>;

/// For each claim, whether it holds for all rows but its own. One product in float64 with an error bound,
/// then sums in twice the precision; rows that these leave open are decided by `decide`, or, without one,
/// against the claim.
///
/// Errors    Cancelled
///
/// Cost      2 n width operations per claim
[[nodiscard]] std::vector<char> proved_leads(MatrixView<const double> rows,
                                             const std::vector<LeadClaim>& claims, const DecideLead& decide,
                                             unsigned threads, const Progress& progress);

}  // namespace normscope::certificates
