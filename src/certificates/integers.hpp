#pragma once

#include <optional>
#include <string>
#include <vector>

#include <normscope/core/view.hpp>

/// Checks integer certificates without rounding errors. The result is empty if this build has no arithmetic
/// for them.
namespace normscope::certificates {

struct Numerator {
  std::size_t row = 0;
  std::string digits{};
};

/// Whether normalᵀa > normalᵀb for every row a of A and b of B.
[[nodiscard]] std::optional<bool> separates(const std::vector<std::string>& normal,
                                            MatrixView<const double> a, MatrixView<const double> b);

/// Whether the numerators are positive and sum to the denominator over A and over B, and Σ numerator · row is
/// equal for both.
[[nodiscard]] std::optional<bool> meet(const std::vector<Numerator>& of_a, const std::vector<Numerator>& of_b,
                                       const std::string& denominator, MatrixView<const double> a,
                                       MatrixView<const double> b);

}  // namespace normscope::certificates
