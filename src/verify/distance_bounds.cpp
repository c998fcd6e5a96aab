#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <normscope/core/exact.hpp>
#include <normscope/core/lanes.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>

#include "arithmetic.hpp"
#include "heads.hpp"

namespace normscope::verify {
namespace {

/// Multiplications over all distances; `heads` writes bounds that need fewer.
constexpr double most_operations = 0x1p40;

/// Whether a row-major matrix, of which the upper triangle is read and both are overwritten, has a Cholesky
/// factor UᵀU: row j of U is that of A less each earlier row times its entry of column j, over the root of
/// the pivot. Rows begin at a whole vector, so that entries left of the diagonal are computed and not used.
NORMSCOPE_LANES_CLONES bool has_factor(MatrixView<double> a) {
  constexpr std::size_t step = lane_count<double>;
  constexpr std::size_t at_once = 4;  // vectors
  const std::size_t n = a.rows();
  const std::size_t stride = a.stride();
  const double* const top = a.row(0).data();
  for (std::size_t j = 0; j < n; ++j) {
    double* const row = a.row(j).data();
    const std::size_t begin = j - j % step;
    std::size_t i = begin;
    for (; i + at_once * step <= n; i += at_once * step) {
      std::array<Lanes<double>, at_once> rest;
      std::memcpy(&rest, row + i, sizeof rest);
      for (std::size_t k = 0; k < j; ++k) {
        std::array<Lanes<double>, at_once> earlier;
        std::memcpy(&earlier, top + k * stride + i, sizeof earlier);
        for (std::size_t v = 0; v < at_once; ++v) rest[v] -= top[k * stride + j] * earlier[v];
      }
      std::memcpy(row + i, &rest, sizeof rest);
    }
    for (; i + step <= n; i += step) {
      Lanes<double> rest;
      std::memcpy(&rest, row + i, sizeof rest);
      for (std::size_t k = 0; k < j; ++k) {
        Lanes<double> earlier;
        std::memcpy(&earlier, top + k * stride + i, sizeof earlier);
        rest -= top[k * stride + j] * earlier;
      }
      std::memcpy(row + i, &rest, sizeof rest);
    }
    for (; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) row[i] -= top[k * stride + j] * top[k * stride + i];
    }
    if (!(row[j] > 0.0)) return false;
    const double root = std::sqrt(row[j]);
    for (i = begin; i + step <= n; i += step) {
      Lanes<double> rest;
      std::memcpy(&rest, row + i, sizeof rest);
      rest /= root;
      std::memcpy(row + i, &rest, sizeof rest);
    }
    for (; i < n; ++i) row[i] /= root;
  }
  return true;
}

/// Whether level I − A is positive definite; A is overwritten.
bool is_below(double level, MatrixView<double> a) {
  const std::size_t n = a.rows();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i; j < n; ++j) a.row(i)[j] = (j == i ? level : 0.0) - a.row(i)[j];
  }
  return has_factor(a);
}

/// P close to (L Lᵀ)⁻¹, for L in float64.
std::vector<double> inverse_square(const std::vector<double>& lower, std::size_t n) {
  std::vector<double> inverse(n * n);  // L⁻¹, row by row
  for (std::size_t i = 0; i < n; ++i) {
    double* const row = inverse.data() + i * n;
    row[i] = 1.0;
    for (std::size_t j = 0; j < i; ++j) {
      for (std::size_t k = 0; k <= j; ++k) row[k] -= lower[i * n + j] * inverse[j * n + k];
    }
    for (std::size_t k = 0; k <= i; ++k) row[k] /= lower[i * n + i];
  }
  std::vector<double> result(n * n);
  const MatrixView<const double> rows(inverse.data(), n, n);
  multiply(Factor<double>(rows).transposed(), rows, MatrixView<double>(result.data(), n, n));
  return result;
}

/// A test of LᵀG L < square in one factorization: of b²P − G, with P close to the inverse of a slightly
/// larger L Lᵀ, whose queries q = L z have qᵀ P q <= 1 + δ, and b² (1 + δ) <= square. What it does not prove
/// may still hold.
class InverseTest {
 public:
  /// `trace` bounds that of G.
  InverseTest(Matrix ellipsoid, double thicker, double square, double trace) : dim_(ellipsoid.rows) {
    for (std::size_t i = 0; i < dim_; ++i) ellipsoid.at(i, i) += thicker;
    const std::optional<Matrix> factor = cholesky(ellipsoid);
    if (!factor) return;
    const std::vector<double> lower = rounded(*factor);
    shape_ = inverse_square(lower, dim_);
    // δ from LᵀP L − I.
    std::vector<double> half(dim_ * dim_), inner(dim_ * dim_);
    const MatrixView<const double> rows(lower.data(), dim_, dim_);
    multiply(MatrixView<const double>(shape_.data(), dim_, dim_), rows,
             MatrixView<double>(half.data(), dim_, dim_));
    multiply(Factor<double>(rows).transposed(), MatrixView<const double>(half.data(), dim_, dim_),
             MatrixView<double>(inner.data(), dim_, dim_));
    for (std::size_t i = 0; i < dim_; ++i) inner[i * dim_ + i] -= 1.0;
    const double size = euclidean_norm(lower);
    const auto terms = static_cast<std::ptrdiff_t>(3 * dim_ + 16);
    const double delta =
        euclidean_norm(inner) + rounding(terms) * (size * size * euclidean_norm(shape_) + 1.0);
    if (!(delta < 0.5)) return;
    for (double& value : shape_) value *= square * (1.0 - 16.0 * unit) / (1.0 + up(delta));
    double sum = 0.0;
    for (std::size_t i = 0; i < dim_; ++i) sum += shape_[i * dim_ + i];
    lost_ = 4.0 * (rounding(terms) * (sum + trace) + HeadScores::angle_error * trace) +
            std::numeric_limits<double>::min();
  }

  /// `work` is overwritten.
  [[nodiscard]] bool passes(const std::vector<double>& gram, MatrixView<double> work) const {
    if (!(lost_ < infinity)) return false;
    for (std::size_t i = 0; i < dim_; ++i) {
      for (std::size_t j = i; j < dim_; ++j) work.row(i)[j] = shape_[i * dim_ + j] - gram[i * dim_ + j];
      work.row(i)[i] -= lost_;
    }
    return has_factor(work);
  }

 private:
  std::size_t dim_;
  std::vector<double> shape_{};  ///< b²P
  double lost_ = infinity;       ///< rounding of entries and of the factor
};

/// The coordinates: the first ones of the pairs that turn, the second ones, then those that stay.
std::vector<std::size_t> by_pairs(const HeadScores& scores) {
  std::vector<std::size_t> order = scores.first;
  order.insert(order.end(), scores.second.begin(), scores.second.end());
  for (std::size_t i = 0; i < scores.dim; ++i) {
    if (!scores.turning[i]) order.push_back(i);
  }
  return order;
}

Matrix reordered(const Matrix& a, const std::vector<std::size_t>& order) {
  Matrix result(a.rows, a.columns);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) result.at(i, j) = a.at(order[i], order[j]);
  }
  return result;
}

/// R G Rᵀ of a row-major G whose coordinates are in the order of `by_pairs`, n of them.
NORMSCOPE_LANES_CLONES void turn_both_sides(double* gram, std::size_t n, std::size_t pairs,
                                            const double* __restrict cosines,
                                            const double* __restrict sines) {
  for (std::size_t j = 0; j < pairs; ++j) {
    double* __restrict const a = gram + j * n;
    double* __restrict const b = gram + (pairs + j) * n;
    for (std::size_t k = 0; k < n; ++k) {
      const double x = a[k];
      a[k] = cosines[j] * x - sines[j] * b[k];
      b[k] = sines[j] * x + cosines[j] * b[k];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    double* __restrict const a = gram + i * n;
    double* __restrict const b = gram + i * n + pairs;
    for (std::size_t j = 0; j < pairs; ++j) {
      const double x = a[j];
      a[j] = cosines[j] * x - sines[j] * b[j];
      b[j] = sines[j] * x + cosines[j] * b[j];
    }
  }
}

/// Adds factor x xᵀ.
NORMSCOPE_LANES_CLONES void add_square(double* __restrict gram, const std::vector<double>& x, double factor) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double times = factor * x[i];
    for (std::size_t k = 0; k < x.size(); ++k) gram[i * x.size() + k] += times * x[k];
  }
}

}  // namespace

double spread_by_distance(const HeadScores& scores, const DistanceBounds& bounds) {
  if (scores.frequencies.size() != scores.pairs() || bounds.distances == 0 || !(bounds.reach >= 0.0) ||
      !(bounds.query_square >= 0.0) || !(bounds.key_square >= 0.0)) {
    return infinity;
  }
  const std::size_t dim = scores.dim;
  const Column moving = scores.moving_constant();
  const double constant = size_of(scores.query.constant);
  // All scores are 0.
  if (scores.query.map_size + constant == 0.0 || scores.key.map_size + size_of(moving) == 0.0) return 0.0;
  if (static_cast<double>(bounds.distances) * std::pow(static_cast<double>(dim), 3.0) > most_operations) {
    return infinity;
  }
  double centre = 0.0;
  for (const double value : bounds.centre) centre += value * value;
  const double shift = size_of(moving) + up(std::sqrt(centre));
  // A square of 0 leaves the constant out.
  double left_out = 0.0;
  if (bounds.query_square == 0.0) left_out += constant * (scores.key.map_size + shift);
  if (bounds.key_square == 0.0) left_out += scores.query.map_size * shift;
  // The ellipsoid of queries, L Lᵀ, slightly enlarged.
  Matrix ellipsoid = scores.query.gram;
  if (bounds.query_square > 0.0) {
    const DoubleDouble square = bounds.query_square;
    for (std::size_t i = 0; i < dim; ++i) {
      for (std::size_t j = 0; j < dim; ++j) {
        ellipsoid.at(i, j) += scores.query.constant[i] * scores.query.constant[j] / square;
        ellipsoid.at(i, j) *= DoubleDouble(1.0) + square;
      }
    }
  }
  double trace = 0.0;
  for (std::size_t i = 0; i < dim; ++i) trace += ellipsoid.at(i, i).high;
  const double thicker = 1e-14 * trace + std::numeric_limits<double>::min();
  for (std::size_t i = 0; i < dim; ++i) ellipsoid.at(i, i) += thicker;
  const std::vector<std::size_t> order = by_pairs(scores);
  ellipsoid = reordered(ellipsoid, order);
  const std::optional<Matrix> factor = cholesky(ellipsoid);
  if (!factor) return infinity;
  const std::vector<double> lower = rounded(*factor);
  const double rho = bounds.key_square;
  std::vector<double> gram = rounded(reordered(scores.key.gram, order));
  for (double& value : gram) value *= 1.0 + rho;
  double key_trace = (1.0 + rho) * scores.key.map_size * scores.key.map_size;
  if (rho > 0.0) key_trace += (1.0 + rho) / rho * shift * shift;
  // reach²I − LᵀG_tL: each entry is a sum of dim² products, rotated twice before and factored after.
  const double square = bounds.reach * bounds.reach;
  const double lost = (rounding(static_cast<std::ptrdiff_t>(3 * dim + 16)) + 4.0 * HeadScores::angle_error) *
                          (trace + thicker * static_cast<double>(dim)) * key_trace +
                      2.0 * rounding(static_cast<std::ptrdiff_t>(dim)) * static_cast<double>(dim) * square;
  const InverseTest quick(ellipsoid, 1e-7 * trace, square, key_trace);
  std::vector<double> turned(dim * dim), halves(dim * dim), products(dim * dim);
  const MatrixView<const double> of_queries(lower.data(), dim, dim);
  std::vector<double> cosines(scores.pairs()), sines(scores.pairs()), apart(dim);
  for (std::size_t t = 0; t < bounds.distances; ++t) {
    const HeadScores::Turn turn = scores.turn(static_cast<double>(t));
    for (std::size_t j = 0; j < scores.pairs(); ++j) {
      cosines[j] = turn.cosines[j].high;
      sines[j] = turn.sines[j].high;
    }
    turned = gram;
    turn_both_sides(turned.data(), dim, scores.pairs(), cosines.data(), sines.data());
    if (rho > 0.0) {
      const Column where = scores.turned(moving, turn);
      for (std::size_t i = 0; i < dim; ++i) apart[i] = where[order[i]].high - bounds.centre[order[i]];
      add_square(turned.data(), apart, (1.0 + rho) / rho);
    }
    const MatrixView<double> half(halves.data(), dim, dim);
    const MatrixView<double> inner(products.data(), dim, dim);
    if (quick.passes(turned, inner)) continue;
    multiply(MatrixView<const double>(turned.data(), dim, dim), of_queries, half);
    multiply(Factor<double>(of_queries).transposed(), MatrixView<const double>(half), inner);
    if (!is_below(square - lost, inner)) return infinity;
  }
  return up(2.0 * (bounds.reach + left_out));
}

}  // namespace normscope::verify
