#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>

#include "twofold.hpp"
#include "weights.hpp"

namespace normscope::certificates {

/// Σ λ_j (x − row_j), entry by entry, in about twice the precision of float64.
[[nodiscard]] std::vector<Twofold> weighted_difference(std::span<const double> x,
                                                       MatrixView<const double> rows,
                                                       const std::vector<Weight>& weights);

/// The same for numbers, as rows of width one.
[[nodiscard]] Twofold weighted_difference(double x, std::span<const double> values,
                                          const std::vector<Weight>& weights);

}  // namespace normscope::certificates
