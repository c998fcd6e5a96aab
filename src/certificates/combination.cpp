#include "combination.hpp"

#include <cmath>

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

std::vector<Twofold> weighted_difference(std::span<const double> x, MatrixView<const double> rows,
                                         const std::vector<Weight>& weights) {
  std::vector<Twofold> result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    TwofoldSum sum;
    for (const Weight& weight : weights) {
      sum.add(DoubleDouble::sum(x[i], -rows.row(weight.index)[i]), weight.weight);
    }
    result[i] = sum.result();
  }
  return result;
}

Twofold weighted_difference(double x, std::span<const double> values, const std::vector<Weight>& weights) {
  TwofoldSum sum;
  for (const Weight& weight : weights) sum.add(DoubleDouble::sum(x, -values[weight.index]), weight.weight);
  return sum.result();
}

}  // namespace normscope::certificates
