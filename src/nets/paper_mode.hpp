#pragma once

#include <normscope/nets/construct.hpp>

#include "samples.hpp"

namespace normscope::nets {

/// Algorithm 1 as published, except that cluster ids replace tests for equality, in T; fills `folds`. Three
/// neurons represent x ∈ S¹ as √3 (x₁ u₁ + x₂ u₂), u₁ = (1, −1, 0)/√2, u₂ = (1, 1, −2)/√6.
///
/// Source    [Ni et al. 2024, Algorithm 1]
template <typename T>
[[nodiscard]] Net construct_paper(MatrixView<const double> x, const Samples& samples,
                                  const ConstructOptions& options, const Progress& progress,
                                  std::vector<Fold>& folds);

}  // namespace normscope::nets
