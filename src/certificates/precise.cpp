#include "precise.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace normscope::certificates {

DoubleDouble dot(std::span<const DoubleDouble> a, std::span<const DoubleDouble> b) {
  DoubleDouble sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Matrix product(const Matrix& a, const Matrix& b) { return product_transposed(a, transposed(b)); }

Matrix product_transposed(const Matrix& a, const Matrix& b) {
  Matrix result(a.rows, b.rows);
  const bool symmetric = &a == &b;
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = symmetric ? i : 0; j < b.rows; ++j) {
      result.at(i, j) = dot({&a.values[i * a.columns], a.columns}, {&b.values[j * b.columns], b.columns});
      if (symmetric) result.at(j, i) = result.at(i, j);
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

}  // namespace normscope::certificates
