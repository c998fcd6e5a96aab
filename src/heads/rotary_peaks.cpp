#include <algorithm>
#include <cmath>
#include <vector>

#include <normscope/core/eigen/linear_algebra.hpp>

#include "rotary_scores.hpp"

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Residuals below this part of a matrix are rounding.
constexpr double negligible = 1e-13;

/// A symmetric tridiagonal matrix, as much of it as an iteration has found.
struct Tridiagonal {
  std::vector<double> diagonal;
  std::vector<double> beside;  ///< beside[k] at (k, k + 1)

  /// The largest eigenvalue, by Newton's method from above, which converges monotonically.
  [[nodiscard]] double largest() const {
    const std::size_t count = diagonal.size();
    double at = 0.0;
    for (std::size_t k = 0; k < count; ++k) {
      const double left = k == 0 ? 0.0 : beside[k - 1];
      const double right = k + 1 == count ? 0.0 : beside[k];
      at = std::max(at, diagonal[k] + left + right);
    }
    if (!(at > 0.0)) return 0.0;
    at *= 1.0 + 1e-14;
    for (int step = 0; step < 100; ++step) {
      // Ratios of consecutive leading minors of at·I − T, positive above all eigenvalues, and Σ q'/q.
      double ratio = at - diagonal[0];
      double slope = 1.0;
      if (!(ratio > 0.0)) break;
      double sum = slope / ratio;
      for (std::size_t k = 1; k < count; ++k) {
        const double square = beside[k - 1] * beside[k - 1];
        slope = 1.0 + square * slope / (ratio * ratio);
        ratio = at - diagonal[k] - square / ratio;
        if (!(ratio > 0.0)) return at;
        sum += slope / ratio;
      }
      const double next = at - 1.0 / sum;
      if (!(next < at * (1.0 - 1e-14))) break;
      at = next;
    }
    return at;
  }

  /// The eigenvector of the largest eigenvalue, up to its length.
  [[nodiscard]] VectorXd vector(double value) const {
    // From the last entry backwards, in the direction in which entries grow.
    const auto count = static_cast<Index>(diagonal.size());
    VectorXd result = VectorXd::Zero(count);
    result[count - 1] = 1.0;
    for (Index k = count - 1; k > 0; --k) {
      const auto at = static_cast<std::size_t>(k);
      const double after = k + 1 < count ? beside[at] * result[k + 1] : 0.0;
      result[k - 1] = ((value - diagonal[at]) * result[k] - after) / beside[at - 1];
      if (std::abs(result[k - 1]) > 1e100) result *= 1e-100;
    }
    return result.normalized();
  }
};

}  // namespace

Peaks peaks_at(const MatrixXd& given_query, const MatrixXd& given_key, const Turns& turns, int steps,
               const MatrixXd& given_shifts, const MatrixXd& starts) {
  // Powers of two, so that no square of a length leaves the range of a double.
  const int query_size = std::ilogb(std::max(given_query.norm(), 0x1p-400));
  const int key_size = std::ilogb(std::max(given_key.norm() + given_shifts.norm(), 0x1p-400));
  const MatrixXd query = std::ldexp(1.0, -query_size) * given_query;
  const MatrixXd key = std::ldexp(1.0, -key_size) * given_key;
  const MatrixXd shifts = std::ldexp(1.0, -key_size) * given_shifts;
  const Index count = turns.cosines.rows();
  const Index width = query.cols();
  const MatrixXd query_back = query.transpose();
  const MatrixXd gram = product(key, key.transpose());
  const auto apply = [&](const MatrixXd& points) {
    const MatrixXd queries = product(query, points);
    MatrixXd moved = queries;
    turn_columns(turns, true, moved);
    moved = product(gram, moved);
    turn_columns(turns, false, moved);
    if (shifts.cols() > 0) {
      const Eigen::RowVectorXd along = shifts.cwiseProduct(queries).colwise().sum();
      moved += shifts * along.asDiagonal();
    }
    return product(query_back, moved);
  };
  // Lanczos' iteration from the given starts or one for all distances. Lost orthogonality gives no value
  // beyond the largest.
  std::vector<MatrixXd> basis = {
      starts.cols() > 0 ? starts
                        : MatrixXd(VectorXd::LinSpaced(width, 1.0, 1.5).normalized().replicate(1, count))};
  std::vector<Tridiagonal> found(static_cast<std::size_t>(count));
  std::vector<bool> is_done(static_cast<std::size_t>(count), false);
  const Index last = std::min<Index>(steps, width) - 1;
  for (Index step = 0; step <= last; ++step) {
    const MatrixXd& here = basis.back();
    MatrixXd next = apply(here);
    for (Index i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      Tridiagonal& matrix = found[at];
      if (is_done[at]) {
        next.col(i).setZero();
        continue;
      }
      const double along = here.col(i).dot(next.col(i));
      next.col(i) -= along * here.col(i);
      if (step > 0) next.col(i) -= matrix.beside.back() * basis[basis.size() - 2].col(i);
      matrix.diagonal.push_back(along);
      const double rest = next.col(i).norm();
      is_done[at] = step == last || !(rest > negligible * matrix.diagonal.front());
      if (is_done[at]) continue;
      matrix.beside.push_back(rest);
      next.col(i) /= rest;
    }
    basis.push_back(std::move(next));
  }
  Peaks result{VectorXd(count), MatrixXd(width, count)};
  for (Index i = 0; i < count; ++i) {
    const Tridiagonal& matrix = found[static_cast<std::size_t>(i)];
    const double value = matrix.largest();
    result.values[i] = std::ldexp(value, 2 * (query_size + key_size));
    const VectorXd parts = matrix.vector(value);
    VectorXd point = VectorXd::Zero(width);
    for (Index k = 0; k < parts.size(); ++k) point += parts[k] * basis[static_cast<std::size_t>(k)].col(i);
    const double length = point.norm();
    result.points.col(i) = length > 0.0 ? VectorXd(point / length) : VectorXd(basis.front().col(i));
  }
  return result;
}

}  // namespace normscope::heads
