#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>

namespace normscope::verify {

/// Bounds the error of a product of two vectors in float32, both rounded to it, relative to the product of
/// their lengths; what underflows apart.
[[nodiscard]] constexpr double single_rounding(std::size_t width) {
  const double terms = static_cast<double>(width);
  return 1.01 * (terms + terms / 256.0 + 8.0) * 0x1p-24;
}

/// Calls `visit(i)` for each i < count for which `is_clear(i)` is false. Groups are compared at once, which
/// the compiler vectorizes.
template <typename IsClear, typename Visit>
void each_open(std::size_t count, const IsClear& is_clear, const Visit& visit) {
  constexpr std::size_t lanes = 16;
  for (std::size_t begin = 0; begin < count; begin += lanes) {
    const std::size_t end = std::min(count, begin + lanes);
    bool all = true;
    for (std::size_t i = begin; i < end; ++i) all = all & is_clear(i);
    for (std::size_t i = begin; !all && i < end; ++i) {
      if (!is_clear(i)) visit(i);
    }
  }
}

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

/// For each claim, whether it holds for all rows but its own. One product in float32 with an error bound,
/// then sums in float64 and in twice its precision; rows that these leave open are decided by `decide`, or,
/// without one, against the claim.
///
/// Errors    Cancelled
///
/// Cost      2 n width operations per claim
[[nodiscard]] std::vector<char> proved_leads(MatrixView<const double> rows,
                                             const std::vector<LeadClaim>& claims, const DecideLead& decide,
                                             unsigned threads, const Progress& progress);

/// Whether the claim holds for those rows, other than its own, in float64 and twice its precision; rows that
/// these leave open are decided by `decide`.
[[nodiscard]] bool is_proved_lead(MatrixView<const double> rows, const LeadClaim& claim,
                                  std::span<const std::size_t> others,
                                  const std::function<bool(std::size_t row)>& decide);

}  // namespace normscope::verify
