#include "duplicates.hpp"

#include <algorithm>
#include <numeric>

namespace normscope::selectability {

std::vector<std::size_t> find_duplicates(MatrixView<const double> rows, std::span<const double> numbers) {
  std::vector<std::size_t> order(rows.rows());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto compare = [&](std::size_t a, std::size_t b) {
    if (!numbers.empty() && numbers[a] != numbers[b]) return numbers[a] < numbers[b] ? -1 : 1;
    const std::span<const double> x = rows.row(a);
    const std::span<const double> y = rows.row(b);
    const auto [first, second] = std::mismatch(x.begin(), x.end(), y.begin());
    return first == x.end() ? 0 : (*first < *second ? -1 : 1);
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int sign = compare(a, b);
    return sign < 0 || (sign == 0 && a < b);
  });
  std::vector<std::size_t> duplicates(rows.rows(), no_duplicate);
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && compare(order[begin], order[end]) == 0) ++end;
    for (std::size_t i = begin; end - begin > 1 && i < end; ++i) {
      duplicates[order[i]] = order[i == begin ? begin + 1 : begin];
    }
    begin = end;
  }
  return duplicates;
}

bool are_duplicates(std::span<const std::size_t> duplicates, std::size_t a, std::size_t b) {
  if (duplicates.empty() || duplicates[a] == no_duplicate || duplicates[b] == no_duplicate) return false;
  // The first of several equal rows is one of the pair.
  return std::min(a, duplicates[a]) == std::min(b, duplicates[b]);
}

}  // namespace normscope::selectability
