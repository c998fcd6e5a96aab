#include "combination.hpp"

#include <cmath>
#include <limits>

#include <normscope/numeric/sum.hpp>

namespace normscope::certificates {

Total total_of(const std::vector<Weight>& weights, std::size_t excluded) {
  CompensatedSum sum;
  for (const Weight& weight : weights) {
    if (!(weight.weight >= 0.0) || weight.index == excluded) return {};
    sum.add(weight.weight);
  }
  const double total = sum.value();
  if (!(total > 0.0) || !std::isfinite(total)) return {};
  return {true, down(total), up(total)};
}

std::vector<Bounded> weighted_difference(std::span<const double> x, MatrixView<const double> rows,
                                         const std::vector<Weight>& weights) {
  std::vector<Bounded> result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    ExactSum sum;
    for (const Weight& weight : weights) sum.add(two_sum(x[i], -rows.row(weight.index)[i]), weight.weight);
    result[i] = sum.result();
  }
  return result;
}

Bounded weighted_difference(double x, std::span<const double> values, const std::vector<Weight>& weights) {
  ExactSum sum;
  for (const Weight& weight : weights) sum.add(two_sum(x, -values[weight.index]), weight.weight);
  return sum.result();
}

double length_at_most(std::span<const Bounded> vector) {
  std::vector<double> sizes;
  sizes.reserve(vector.size());
  for (const Bounded& entry : vector) sizes.push_back(up(std::abs(entry.value) + entry.error));
  const double length = up(euclidean_norm(sizes));
  return std::isnan(length) ? std::numeric_limits<double>::infinity() : length;
}

}  // namespace normscope::certificates
