#include "arithmetic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::verify {

std::optional<Enclosure> total_of(const std::vector<Weight>& weights, std::size_t excluded) {
  CompensatedSum sum;
  for (const Weight& weight : weights) {
    if (!(weight.weight >= 0.0) || weight.index == excluded) return std::nullopt;
    sum.add(weight.weight);
  }
  const double total = sum.value();
  if (!(total > 0.0) || !std::isfinite(total)) return std::nullopt;
  return Enclosure{total, 16.0 * unit * total};
}

Enclosure operator-(const Enclosure& a, const Enclosure& b) {
  return {a.value - b.value, 2.0 * (a.error + b.error) + 2.0 * fine * (a.size() + b.size())};
}

Enclosure operator*(const Enclosure& a, const Enclosure& b) {
  if (a.is_zero() || b.is_zero()) return {};
  const DoubleDouble value = a.value * b.value;
  return {value,
          2.0 * (a.error * b.size() + b.error * a.size()) + 2.0 * fine * std::abs(value.high) + underflow};
}

Enclosure operator/(const Enclosure& a, const Enclosure& b) {
  const DoubleDouble value = a.value / b.value;
  const double size = std::abs(b.value.high) - 2.0 * b.error;
  if (!(size > 0.0)) return {value, std::numeric_limits<double>::infinity()};
  const double ratio = std::abs(value.high);
  return {value, 2.0 * (a.error + b.error * ratio) / size + 2.0 * fine * ratio};
}

Enclosure mean_of(std::span<const Enclosure> values) {
  EnclosureSum total;
  for (const Enclosure& value : values) total.add(value);
  return total.result() / Enclosure{DoubleDouble(static_cast<double>(values.size()))};
}

double length_at_most(std::span<const Enclosure> vector) {
  double largest = 0.0;
  std::vector<double> errors;
  for (const Enclosure& entry : vector) {
    if (!std::isfinite(entry.size())) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, entry.size());
    errors.push_back(entry.error);
  }
  const BinaryScale scale = BinaryScale::of(largest);
  DoubleDouble square;
  for (const Enclosure& entry : vector) {
    const DoubleDouble scaled(scale.divide(entry.value.high), scale.divide(entry.value.low));
    square += scaled * scaled;
  }
  return (scale.multiply(sqrt(square).high) + up(euclidean_norm(errors))) * (1.0 + 4.0 * unit);
}

std::vector<Enclosure> weighted_difference(std::span<const double> x, MatrixView<const double> rows,
                                           const std::vector<Weight>& weights) {
  std::vector<Enclosure> result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EnclosureSum sum;
    for (const Weight& weight : weights) {
      sum.add(DoubleDouble::sum(x[i], -rows.row(weight.index)[i]), weight.weight);
    }
    result[i] = sum.result();
  }
  return result;
}

DoubleDouble dot(std::span<const DoubleDouble> a, std::span<const DoubleDouble> b) {
  // Four sums at a time: each addition waits for the one before.
  std::array<DoubleDouble, 4> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= a.size(); i += sums.size()) {
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < a.size(); ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

Matrix product(const Matrix& a, const Matrix& b) { return product_transposed(a, transposed(b)); }

namespace {

/// Rows of B whose products with a row of A are summed together, entry by entry: sums that do not wait for
/// each other, in registers of several doubles.
constexpr std::size_t lanes = 4;
/// Terms whose low parts are summed in float64: (n² + 7 n + 6) u² of the sizes of n <= 8 terms, no more than
/// 16 (n + 1) u²; sums of such sums add 16 u² each.
constexpr std::size_t terms_together = 8;

struct RowBlock {
  using Lanes = double __attribute__((vector_size(lanes * sizeof(double))));

  /// Rows first to first + lanes of a matrix; those beyond it are 0.
  RowBlock(const Matrix& b, std::size_t first) : high(b.columns * lanes), low(b.columns * lanes) {
    for (std::size_t lane = 0; lane < lanes && first + lane < b.rows; ++lane) {
      for (std::size_t k = 0; k < b.columns; ++k) {
        high[k * lanes + lane] = b.at(first + lane, k).high;
        low[k * lanes + lane] = b.at(first + lane, k).low;
      }
    }
  }
  /// The products with x.
  [[nodiscard]] std::array<DoubleDouble, lanes> times(const DoubleDouble* x) const {
    std::array<DoubleDouble, lanes> result{};
    const std::size_t terms = high.size() / lanes;
    for (std::size_t first = 0; first < terms; first += terms_together) {
      Lanes sum{};
      Lanes rest{};
      for (std::size_t k = first; k < std::min(first + terms_together, terms); ++k) {
        // DoubleDouble::product and sum, of several numbers.
        const double split = 134217729.0 * x[k].high;
        const double upper = split - (split - x[k].high);
        const double lower = x[k].high - upper;
        Lanes b;
        Lanes b_low;
        std::memcpy(&b, high.data() + k * lanes, sizeof b);
        std::memcpy(&b_low, low.data() + k * lanes, sizeof b_low);
        const Lanes b_split = 134217729.0 * b;
        const Lanes b_upper = b_split - (b_split - b);
        const Lanes b_lower = b - b_upper;
        const Lanes product = x[k].high * b;
        const Lanes left =
            ((upper * b_upper - product) + upper * b_lower + lower * b_upper) + lower * b_lower;
        const Lanes next = sum + product;
        const Lanes part = next - sum;
        rest += ((sum - (next - part)) + (product - part)) + (left + (x[k].high * b_low + x[k].low * b));
        sum = next;
      }
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        result[lane] += DoubleDouble::sum(sum[lane], rest[lane]);
      }
    }
    return result;
  }

  std::vector<double> high;
  std::vector<double> low;
};

}  // namespace

Matrix product_transposed(const Matrix& a, const Matrix& b) {
  Matrix result(a.rows, b.rows);
  const bool symmetric = &a == &b;
  for (std::size_t first = 0; first < b.rows; first += lanes) {
    const RowBlock block(b, first);
    const std::size_t last = std::min(first + lanes, b.rows);
    for (std::size_t i = 0; i < (symmetric ? last : a.rows); ++i) {
      const std::array<DoubleDouble, lanes> sums = block.times(a.values.data() + i * a.columns);
      for (std::size_t j = first; j < last; ++j) {
        result.at(i, j) = sums[j - first];
        if (symmetric) result.at(j, i) = sums[j - first];
      }
    }
  }
  return result;
}

Column product(const Matrix& a, std::span<const DoubleDouble> x) {
  Column result;
  for (std::size_t i = 0; i < a.rows; ++i)
    result.push_back(dot({a.values.data() + i * a.columns, a.columns}, x));
  return result;
}

Column transposed_product(const Matrix& a, std::span<const DoubleDouble> x) {
  Column result(a.columns);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) result[j] += a.at(i, j) * x[i];
  }
  return result;
}

Matrix transposed(const Matrix& a) {
  Matrix result(a.columns, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) result.at(j, i) = a.at(i, j);
  }
  return result;
}

DoubleDouble square_of(std::span<const DoubleDouble> x) { return dot(x, x); }

double length_of(std::span<const DoubleDouble> x) { return sqrt(square_of(x)).high; }

double size_of(std::span<const DoubleDouble> x) { return up(length_of(x)); }

std::vector<double> rounded(const Matrix& a) {
  std::vector<double> result;
  result.reserve(a.values.size());
  for (const DoubleDouble& value : a.values) result.push_back(value.high);
  return result;
}

Column to_column(std::span<const double> x) { return {x.begin(), x.end()}; }

std::optional<Matrix> cholesky(const Matrix& a) {
  Matrix factor(a.rows, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const DoubleDouble rest =
          a.at(i, j) - dot({&factor.values[i * a.rows], j}, {&factor.values[j * a.rows], j});
      if (i != j) {
        factor.at(i, j) = rest / factor.at(j, j);
      } else if (!(rest.high > 0.0)) {
        return std::nullopt;
      } else {
        factor.at(i, i) = sqrt(rest);
      }
    }
  }
  return factor;
}

Matrix semidefinite_factor(const Matrix& a, double least) {
  const std::size_t n = a.rows;
  Matrix rest = a;
  Matrix factor(n, n);
  for (std::size_t k = 0; k < n; ++k) {
    // The largest remaining pivot.
    std::size_t at = 0;
    for (std::size_t i = 1; i < n; ++i) {
      if (rest.at(i, i).high > rest.at(at, at).high) at = i;
    }
    const DoubleDouble pivot = rest.at(at, at);
    if (!(pivot.high > least)) break;
    const DoubleDouble root = sqrt(pivot);
    for (std::size_t i = 0; i < n; ++i) factor.at(i, k) = rest.at(i, at) / root;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) rest.at(i, j) -= factor.at(i, k) * factor.at(j, k);
    }
  }
  return factor;
}

Column solve(const Matrix& factor, Column b) {
  const std::size_t n = factor.rows;
  for (std::size_t i = 0; i < n; ++i) {
    b[i] = (b[i] - dot({factor.values.data() + i * n, i}, {b.data(), i})) / factor.at(i, i);
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) b[i] -= factor.at(j, i) * b[j];
    b[i] /= factor.at(i, i);
  }
  return b;
}

std::optional<Matrix> inverse(Matrix a) {
  const std::size_t n = a.rows;
  Matrix result(n, n);
  for (std::size_t i = 0; i < n; ++i) result.at(i, i) = 1.0;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t at = k;
    for (std::size_t i = k + 1; i < n; ++i) {
      if (std::abs(a.at(i, k).high) > std::abs(a.at(at, k).high)) at = i;
    }
    if (!(std::abs(a.at(at, k).high) > 0.0)) return std::nullopt;
    for (std::size_t j = 0; j < n; ++j) {
      std::swap(a.at(k, j), a.at(at, j));
      std::swap(result.at(k, j), result.at(at, j));
    }
    const DoubleDouble pivot = a.at(k, k);
    for (std::size_t j = 0; j < n; ++j) {
      a.at(k, j) /= pivot;
      result.at(k, j) /= pivot;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const DoubleDouble factor = a.at(i, k);
      if (i == k || factor.high == 0.0) continue;
      for (std::size_t j = 0; j < n; ++j) {
        a.at(i, j) -= factor * a.at(k, j);
        result.at(i, j) -= factor * result.at(k, j);
      }
    }
  }
  return result;
}

}  // namespace normscope::verify
