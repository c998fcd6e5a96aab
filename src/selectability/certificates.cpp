#include "certificates.hpp"

#include <cmath>
#include <limits>

#include <normscope/numeric/rounding.hpp>
#include <normscope/numeric/sum.hpp>

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

double total_weight(std::span<const convex::PointWeight> weights, std::size_t rows, std::size_t index) {
  CompensatedSum total;
  for (const convex::PointWeight& share : weights) {
    if (!(share.weight >= 0.0) || share.id >= rows || share.id == index) return 0.0;
    total.add(share.weight);
  }
  return total.value() > 0.0 && std::isfinite(total.value()) ? total.value() : 0.0;
}

}  // namespace normscope::selectability
