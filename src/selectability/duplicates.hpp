#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::selectability {

inline constexpr std::size_t no_duplicate = std::numeric_limits<std::size_t>::max();

/// For each row of `rows`, with its number of `numbers` if there are any, another row that is equal, or
/// `no_duplicate`. Of several equal rows, the first gets the second, and all others get the first.
///
/// Cost      O(rows log(rows) width)
[[nodiscard]] std::vector<std::size_t> find_duplicates(MatrixView<const double> rows,
                                                       std::span<const double> numbers = {});

/// Whether two rows are equal, according to the result of `find_duplicates`; an empty one says that all
/// differ.
[[nodiscard]] bool are_duplicates(std::span<const std::size_t> duplicates, std::size_t a, std::size_t b);

}  // namespace normscope::selectability
