#include <normscope/proof/ball.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>
#include <Eigen/Core>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::proof {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// The problem divided by a power of two, so that its largest number is in [1, 2): its lengths are squared.
struct Problem {
  MatrixXd matrix;
  VectorXd offset;
  BinaryScale by{};

  /// Converts bounds and multiplier to the given problem. They account for what is lost below 2⁻⁵⁰⁰, where
  /// squares, products or the quotients of the scale underflow.
  [[nodiscard]] ExtremeLength scaled_back(ExtremeLength result) const {
    const double largest = std::max(matrix.cwiseAbs().maxCoeff(), offset.cwiseAbs().maxCoeff());
    if (largest == 0.0) return result;
    const double lost =
        static_cast<double>(matrix.rows()) * static_cast<double>(matrix.cols() + 1) * 0x1p-500;
    result.lower = std::max(0.0, std::nextafter(by.multiply(result.lower - lost), -infinity));
    result.upper = std::nextafter(by.multiply(result.upper + lost), infinity);
    result.multiplier =
        std::min(by.multiply(by.multiply(result.multiplier)), std::numeric_limits<double>::max());
    return result;
  }

  /// |M u + m|, from below and above.
  [[nodiscard]] std::pair<double, double> length(const VectorXd& u) const {
    const VectorXd image = matrix * u + offset;
    const VectorXd error = rounding(u.size() + 1) * (matrix.cwiseAbs() * u.cwiseAbs() + offset.cwiseAbs());
    const double slack = rounding(image.size());
    return {std::max(0.0, image.norm() * (1.0 - slack) - error.norm() * (1.0 + slack)),
            image.norm() * (1.0 + slack) + error.norm() * (1.0 + slack)};
  }
};

Problem read(MatrixView<const double> matrix, std::span<const double> offset) {
  if (matrix.rows() == 0 || matrix.width() == 0 || offset.size() != matrix.rows()) {
    throw Error(ErrorCode::Shape,
                fmt::format("trust region: a {} x {} matrix and {} offsets, expected an offset for each row",
                            matrix.rows(), matrix.width(), offset.size()));
  }
  Problem problem{MatrixXd(static_cast<Index>(matrix.rows()), static_cast<Index>(matrix.width())),
                  VectorXd(static_cast<Index>(offset.size())),
                  BinaryScale::of(std::max(largest_size(matrix), largest_size(offset)))};
  for (std::size_t i = 0; i < matrix.rows(); ++i) {
    for (std::size_t j = 0; j < matrix.width(); ++j) {
      problem.matrix(static_cast<Index>(i), static_cast<Index>(j)) = problem.by.divide(matrix.row(i)[j]);
    }
    problem.offset[static_cast<Index>(i)] = problem.by.divide(offset[i]);
  }
  if (!problem.matrix.allFinite() || !problem.offset.allFinite()) {
    throw Error(ErrorCode::Argument, "trust region: an entry is not finite");
  }
  return problem;
}

/// The point, if it is finite and its length exceeds 1 by no more than rounding.
bool in_ball(const VectorXd& u) { return u.allFinite() && u.norm() * (1.0 + rounding(u.size())) <= 1.0; }

/// `u` scaled down until it is certainly in the ball; the centre if it is not finite.
VectorXd drawn_in(VectorXd u) {
  if (!u.allFinite()) return VectorXd::Zero(u.size());
  const double longest = 1.0 - 2.0 * rounding(u.size());
  if (u.norm() > longest) u *= longest / u.norm();
  return u;
}

VectorXd map(std::span<const double> values) {
  return Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size()));
}

/// |M u + m| >= yᵀ(M u + m)/|y| >= (yᵀm − |Mᵀy|)/|y| for every u and every y.
double least_by(const Problem& p, VectorXd y) {
  const double largest = y.size() == p.matrix.rows() ? y.cwiseAbs().maxCoeff() : 0.0;
  if (!(largest > 0.0) || !std::isfinite(largest)) return 0.0;
  y /= largest;
  const VectorXd back = p.matrix.transpose() * y;
  const VectorXd back_error = rounding(y.size()) * (p.matrix.cwiseAbs().transpose() * y.cwiseAbs());
  const double along = y.dot(p.offset);
  const double error = rounding(y.size()) * y.cwiseAbs().dot(p.offset.cwiseAbs()) + back_error.norm();
  const double slack = rounding(y.size() + p.matrix.cols());
  const double least = along - back.norm() - 2.0 * error - slack * (std::abs(along) + back.norm());
  return std::max(0.0, least / y.norm() * (1.0 - slack));
}

ExtremeLength prove_least(const Problem& p, const VectorXd& u, const VectorXd& dual) {
  ExtremeLength result{.upper = infinity};
  result.point.assign(u.begin(), u.end());
  if (u.size() == p.matrix.cols() && in_ball(u)) result.upper = p.length(u).second;
  result.lower = least_by(p, dual);
  if (result.lower > 0.0) result.dual.assign(dual.begin(), dual.end());
  return result;
}

ExtremeLength prove_largest(const Problem& p, const VectorXd& u, double multiplier) {
  ExtremeLength result{.multiplier = multiplier, .upper = infinity};
  result.point.assign(u.begin(), u.end());
  if (u.size() == p.matrix.cols() && in_ball(u)) result.lower = p.length(u).first;
  const Index width = p.matrix.cols();
  const double square = p.matrix.squaredNorm();
  // An upper bound of every image's length. If the matrix is negligible beside the offset, it is the best
  // one.
  result.upper = (std::sqrt(square) + p.offset.norm()) * (1.0 + rounding(p.matrix.rows() * (width + 1) + 4));
  if (square <= 0x1p-400 || !std::isfinite(multiplier)) return result;
  const MatrixXd gram = normscope::product(p.matrix.transpose(), p.matrix);
  const VectorXd b = p.matrix.transpose() * p.offset;
  // The largest error of the smallest eigenvalue caused by rounding of the Gram matrix and its factor.
  // Source  [Rump 2006, Verification of positive definiteness]
  const MatrixXd identity = MatrixXd::Identity(width, width);
  const auto hidden_at = [&](double mu) {
    return 2.0 * (rounding(p.matrix.rows()) * square + rounding(width) * static_cast<double>(width) * mu);
  };
  const auto positive = [&](double mu) {
    return has_cholesky_factor((mu - hidden_at(mu)) * identity - gram);
  };
  const double first = std::max(multiplier, 0.0);
  double above = 0.0;
  while (!positive(first + above)) {
    above = 2.0 * std::max(above, hidden_at(first));
    if (!(above <= 4.0 * (first + square))) return result;
  }
  // A exceeds the factored matrix by `hidden`, so A⁻¹ is at most 1/hidden.
  const double hidden = hidden_at(first + above);
  const double mu = first + above + hidden;
  const MatrixXd a = mu * identity - gram;
  const VectorXd x = solve_positive(a, b);
  const VectorXd residual = b - a * x;
  const double size = a.norm() * x.norm() + b.norm();
  const double off = residual.norm() + rounding(p.matrix.rows() + width) * size;
  const double quadratic = b.dot(x) + x.dot(residual);
  const double error = rounding(p.matrix.rows() + 2 * width) * size * x.norm() +
                       rounding(p.matrix.rows()) * std::sqrt(square) * p.offset.norm() * x.norm();
  const double total = mu + p.offset.squaredNorm() + quadratic + error + off * off / hidden;
  if (total >= 0.0) {
    result.upper = std::min(result.upper, std::sqrt(total * (1.0 + rounding(p.offset.size() + 8))));
  }
  return result;
}

/// M = U diag(s) Vᵀ, and c, m in the coordinates U.
struct Decomposition {
  explicit Decomposition(const Problem& p) {
    const auto rows = static_cast<std::size_t>(p.matrix.rows());
    const auto columns = static_cast<std::size_t>(p.matrix.cols());
    const Svd svd = singular_value_decomposition({p.matrix.data(), rows, columns, 1, rows});
    s = map(svd.values);
    u = row_major(svd.left, p.matrix.rows(), s.size());
    c = u.transpose() * p.offset;
    v = row_major(svd.right, p.matrix.cols(), s.size());
  }

  VectorXd s;
  VectorXd c;
  MatrixXd u;
  MatrixXd v;
};

/// The shift in (0, most] at which the decreasing function `length` passes 1; the length there is at most 1.
template <typename Length>
double shift_to_ball(double most, const Length& length) {
  double low = most * std::numeric_limits<double>::epsilon() * std::numeric_limits<double>::epsilon();
  double high = most;
  if (length(low) <= 1.0) return low;
  while (high > low * (1.0 + 4.0 * unit_roundoff)) {
    const double middle = high / low > 2.0 ? std::sqrt(low) * std::sqrt(high) : low + 0.5 * (high - low);
    if (middle <= low) break;
    (length(middle) > 1.0 ? low : high) = middle;
  }
  return high;
}

}  // namespace

ExtremeLength proved_least(MatrixView<const double> matrix, std::span<const double> offset,
                           std::span<const double> point, std::span<const double> dual) {
  const Problem p = read(matrix, offset);
  return p.scaled_back(prove_least(p, map(point), map(dual)));
}

ExtremeLength proved_largest(MatrixView<const double> matrix, std::span<const double> offset,
                             std::span<const double> point, double multiplier) {
  const Problem p = read(matrix, offset);
  return p.scaled_back(prove_largest(p, map(point), p.by.divide(p.by.divide(multiplier))));
}

ExtremeLength least_length(MatrixView<const double> matrix, std::span<const double> offset) {
  const Problem p = read(matrix, offset);
  if (p.offset.isZero(0.0)) return p.scaled_back(prove_least(p, VectorXd::Zero(p.matrix.cols()), {}));
  const Decomposition d(p);
  // v = −s c/(s² + μ); 0 where s is only rounding.
  const double least =
      d.s[0] * unit_roundoff * static_cast<double>(std::max(p.matrix.rows(), p.matrix.cols()));
  const auto at = [&](double mu) {
    VectorXd v(d.s.size());
    for (Index i = 0; i < v.size(); ++i) {
      v[i] = d.s[i] <= least ? 0.0 : -d.s[i] * d.c[i] / (d.s[i] * d.s[i] + mu);
    }
    return v;
  };
  double mu = 0.0;
  if (at(mu).norm() > 1.0) {
    mu = shift_to_ball(d.s[0] * d.c.norm(), [&](double shift) { return at(shift).norm(); });
  }
  // y = M u + m = U μ c/(s² + μ) + (I − U Uᵀ)m, without the products with M, whose rounding would hide a
  // small y.
  VectorXd y = p.offset - d.u * d.c;
  y -= d.u * (d.u.transpose() * y);
  for (Index i = 0; i < d.s.size(); ++i) {
    y += d.u.col(i) * (d.s[i] <= least ? d.c[i] : d.c[i] * (mu / (d.s[i] * d.s[i] + mu)));
  }
  const VectorXd point = drawn_in(d.v * at(mu));
  ExtremeLength result = prove_least(p, point, y);
  // Where squares of s underflow, the sum itself is more accurate.
  ExtremeLength plain = prove_least(p, point, p.matrix * point + p.offset);
  if (plain.lower > result.lower) result = std::move(plain);
  result.multiplier = mu;
  return p.scaled_back(std::move(result));
}

ExtremeLength largest_length(MatrixView<const double> matrix, std::span<const double> offset) {
  const Problem p = read(matrix, offset);
  // |M u + m|² = uᵀH u + 2 bᵀu + |m|². Small eigenvalues, which squares lose, do not matter here.
  const SymmetricEigen h = symmetric_eigen(normscope::product(p.matrix.transpose(), p.matrix));
  const Index last = h.values.size() - 1;
  const VectorXd b = h.vectors.transpose() * (p.matrix.transpose() * p.offset);
  // v = b/(t + top − h), μ = top + t.
  const double top = std::max(h.values[last], 0.0);
  const auto at = [&](double t) {
    VectorXd v(b.size());
    for (Index i = 0; i < v.size(); ++i) v[i] = b[i] == 0.0 ? 0.0 : b[i] / (t + (top - h.values[i]));
    return v;
  };
  const double most = b.norm();
  const double t = most == 0.0 ? 0.0 : shift_to_ball(most, [&](double shift) { return at(shift).norm(); });
  VectorXd v = most == 0.0 ? VectorXd::Zero(b.size()).eval() : at(t);
  // The hard case: no component along the longest axis, so either direction along it is optimal.
  const double rest = 1.0 - (v.squaredNorm() - v[last] * v[last]);
  if (v.norm() < 1.0) v[last] = std::copysign(std::sqrt(rest), v[last]);
  return p.scaled_back(prove_largest(p, drawn_in(h.vectors * v), top + t));
}

}  // namespace normscope::proof
