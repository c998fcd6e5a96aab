#include "plain_block.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::norm::detail {
namespace {

/// A power of two that brings the largest entry near one, so that neither mean nor squares over- or
/// underflow. If eps dominates the squares, it must stay in range too.
double balance_of(std::span<const double> x, double eps) {
  double largest = 0.0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  if (largest == 0.0 || std::isinf(largest)) return 1.0;
  return std::scalbn(1.0, -std::max(std::ilogb(largest), eps > 0.0 ? -500 : -1000));
}

}  // namespace

Length relative_deviations(const NormSpec& spec, std::span<const double> x, std::span<double> q) {
  const double balance = balance_of(x, spec.eps);
  for (std::size_t i = 0; i < x.size(); ++i) q[i] = x[i] * balance;
  if (spec.centers()) center(q);
  const double deviations = euclidean_norm(q);
  const double of_eps = std::sqrt(spec.eps) * spec.radius();
  // Beside no deviation, eps counts in full and must not lose digits to a large row's scaling.
  if (deviations == 0.0) return {of_eps, 1.0};
  const double length = std::hypot(deviations, of_eps * balance);
  for (double& value : q) value /= length;
  return {length, balance};
}

void require_vectors(std::string_view who, MatrixView<const double> x, MatrixView<const double> vectors) {
  if (vectors.rows() == x.rows() && vectors.width() == x.width()) return;
  throw Error(ErrorCode::Shape, fmt::format("{}: the vectors are {} x {}, expected {} x {}", who,
                                            vectors.rows(), vectors.width(), x.rows(), x.width()));
}

void multiply_by_gain(const NormSpec& spec, std::size_t begin, std::span<const double> from,
                      std::span<double> to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i] * spec.gain_at(begin + i);
}

}  // namespace normscope::norm::detail
