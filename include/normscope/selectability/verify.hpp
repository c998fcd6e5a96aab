#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/selectability/select.hpp>

/// Checks of certificates from the keys alone, without trust in the search.
namespace normscope::selectability {

/// min_j queryᵀ(k_index − k_j)/|query| over all other keys: a lower bound in exact arithmetic. −infinity for
/// a query that is zero, not finite or of another width; +infinity when there is no other key.
///
/// Cost      O(rows · width); keys near the minimum are computed again in twice the precision
[[nodiscard]] double verified_margin(MatrixView<const double> keys, std::size_t index,
                                     std::span<const double> query);

/// |Σ λ_j k_j − k_index| with λ divided by its sum, an upper bound in exact arithmetic; +infinity for weights
/// that are negative, not finite, without a sum, on the key itself or on one that is not there.
[[nodiscard]] double verified_residual(MatrixView<const double> keys, std::size_t index,
                                       std::span<const proof::PointWeight> weights);

/// The same for each coordinate by itself; empty for such weights.
[[nodiscard]] std::vector<double> verified_distances(MatrixView<const double> keys, std::size_t index,
                                                     std::span<const proof::PointWeight> weights);

/// Whether the verdict on key `index` is proved for these keys.
///
/// Errors    Unsupported for Proof::exact where built without GMP
[[nodiscard]] bool verify(MatrixView<const double> keys, const Selection& selection, std::size_t index);

/// Whether every verdict is proved.
[[nodiscard]] bool verify(MatrixView<const double> keys, const Selection& selection, unsigned threads = 0);

}  // namespace normscope::selectability
