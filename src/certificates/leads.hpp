#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/progress.hpp>
#include <normscope/core/view.hpp>

namespace normscope::certificates {

/// "Along `direction` the row `index` scores more than every other one, by at least `least`": the score of
/// row x_j is directionᵀ x_j.
struct LeadClaim {
  std::size_t index = 0;
  std::vector<double> direction{};
  std::vector<double> error{};  ///< of each entry of the direction; none where it is exact
  double least = 0.0;
};

/// For each claim a lower bound, in exact arithmetic, of the least difference of scores; one that is below
/// `least` is within rounding of the true one. One product in float64 with a bound of its error; rows that it
/// leaves open in twice the precision.
/// Errors    Cancelled Cost      2 n width operations a claim
[[nodiscard]] std::vector<double> proved_leads(MatrixView<const double> rows,
                                               const std::vector<LeadClaim>& claims, unsigned threads,
                                               const Progress& progress);

}  // namespace normscope::certificates
