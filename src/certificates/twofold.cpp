#include "twofold.hpp"

#include <cmath>
#include <limits>

#include <normscope/numeric/sum.hpp>

namespace normscope::certificates {
namespace {

/// Relative rounding error of one double-double operation; see `DoubleDouble`.
constexpr double fine = 16.0 * unit * unit;

/// A sum of products with a bound of its rounding error: each of n additions contributes `fine` times the
/// partial sum.
class TwofoldSum {
 public:
  void add(const DoubleDouble& a, double b) {
    const DoubleDouble term = a * DoubleDouble(b);
    sum_ += term;
    size_ += std::abs(term.high);
    ++terms_;
  }
  [[nodiscard]] Twofold result() const {
    const double terms = terms_ + 4.0;
    return {sum_, 2.0 * terms * fine * size_ + 4.0 * terms * std::numeric_limits<double>::min()};
  }

 private:
  DoubleDouble sum_{};
  double size_ = 0.0;
  double terms_ = 0.0;
};

double size_of(const Twofold& x) { return std::abs(x.value.high) * (1.0 + 4.0 * unit) + x.error; }

Twofold sum_of(const std::vector<Weight>& weights) {
  TwofoldSum total;
  for (const Weight& weight : weights) total.add(DoubleDouble(weight.weight), 1.0);
  return total.result();
}

/// Entry i of Σ λ (row − origin)/Σλ.
Twofold mean_entry(MatrixView<const double> rows, const std::vector<Weight>& weights,
                   std::span<const double> origin, std::size_t i) {
  TwofoldSum total;
  for (const Weight& weight : weights) {
    total.add(DoubleDouble::sum(rows.row(weight.index)[i], -origin[i]), weight.weight);
  }
  return total.result() / sum_of(weights);
}

}  // namespace

Twofold operator-(const Twofold& a, const Twofold& b) {
  return {a.value - b.value, 2.0 * (a.error + b.error) + 2.0 * fine * (size_of(a) + size_of(b))};
}

Twofold operator/(const Twofold& a, const Twofold& b) {
  const DoubleDouble value = a.value / b.value;
  const double size = std::abs(b.value.high) - 2.0 * b.error;
  if (!(size > 0.0)) return {value, std::numeric_limits<double>::infinity()};
  const double ratio = std::abs(value.high);
  return {value, 2.0 * (a.error + b.error * ratio) / size + 2.0 * fine * ratio};
}

Twofold dot(std::span<const double> direction, std::span<const double> x, std::span<const double> origin) {
  TwofoldSum total;
  for (std::size_t i = 0; i < x.size(); ++i) total.add(DoubleDouble::sum(x[i], -origin[i]), direction[i]);
  return total.result();
}

double distance_at_most(MatrixView<const double> a, const std::vector<Weight>& weights_a,
                        MatrixView<const double> b, const std::vector<Weight>& weights_b) {
  const std::span<const double> origin = b.row(weights_b.front().index);
  std::vector<double> sizes(a.width());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    sizes[i] = size_of(mean_entry(a, weights_a, origin, i) - mean_entry(b, weights_b, origin, i));
  }
  const double length = up(euclidean_norm(sizes));
  return std::isnan(length) ? std::numeric_limits<double>::infinity() : length;
}

}  // namespace normscope::certificates
