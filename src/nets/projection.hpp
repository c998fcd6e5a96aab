#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::nets {

/// A direction w, and the projected samples.
template <typename T>
struct Projection {
  std::vector<double> direction;
  std::vector<T> values;    ///< wᵀx of each row
  double separation = 0.0;  ///< smallest distance of neighbours of different classes, relative to the range
};

/// The one of 16 Gaussian directions that separates the classes best; with separation 0 and no values if each
/// of them maps two classes to the same value.
///
/// Source    [Ni et al. 2024, Algorithm 1]: any direction that keeps different samples apart
template <typename T>
[[nodiscard]] Projection<T> best_projection(MatrixView<const double> x,
                                            const std::vector<std::uint32_t>& classes, std::uint64_t seed,
                                            unsigned threads);

}  // namespace normscope::nets
