#include "rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <normscope/core/rounding.hpp>

namespace normscope::selectability {
namespace {

/// Number of interleaved partial sums, so that the compiler vectorizes the loop.
constexpr std::size_t term_lanes = 8;

}  // namespace

Bounded quick_difference_dot(std::span<const double> direction, std::span<const double> a,
                             std::span<const double> b) {
  double sums[term_lanes] = {};
  double sizes[term_lanes] = {};
  std::size_t i = 0;
  for (; i + term_lanes <= a.size(); i += term_lanes) {
    for (std::size_t lane = 0; lane < term_lanes; ++lane) {
      const double term = direction[i + lane] * (a[i + lane] - b[i + lane]);
      sums[lane] += term;
      sizes[lane] += std::abs(term);
    }
  }
  for (; i < a.size(); ++i) {
    const double term = direction[i] * (a[i] - b[i]);
    sums[0] += term;
    sizes[0] += std::abs(term);
  }
  double sum = 0.0;
  double size = 0.0;
  for (std::size_t lane = 0; lane < term_lanes; ++lane) {
    sum += sums[lane];
    size += sizes[lane];
  }
  const std::ptrdiff_t terms = static_cast<std::ptrdiff_t>(a.size() + term_lanes);
  return {sum, rounding(terms) * size + static_cast<double>(terms) * std::numeric_limits<double>::min()};
}

double total_weight(std::span<const proof::PointWeight> weights, std::size_t rows, std::size_t index) {
  CompensatedSum total;
  for (const proof::PointWeight& share : weights) {
    if (!(share.weight >= 0.0) || share.id >= rows || share.id == index) return 0.0;
    total.add(share.weight);
  }
  return total.value() > 0.0 && std::isfinite(total.value()) ? total.value() : 0.0;
}

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
