#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::selectability {

inline constexpr std::size_t no_twin = std::numeric_limits<std::size_t>::max();

/// For each row of `rows`, with its number of `numbers` if there are any, another row that is equal, or
/// `no_twin`. Of several equal rows, the first gets the second, and all others get the first.
/// Cost      O(rows log(rows) width)
[[nodiscard]] std::vector<std::size_t> find_twins(MatrixView<const double> rows,
                                                  std::span<const double> numbers = {});

/// Whether two rows are equal, from what `find_twins` found.
[[nodiscard]] bool are_twins(std::span<const std::size_t> twins, std::size_t a, std::size_t b);

}  // namespace normscope::selectability
