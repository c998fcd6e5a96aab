#include "log_softmax_tangent.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/numeric/rounding.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::convex {
namespace {

/// Relative error of a probability by exp, a sum and a division, with a margin; it is treated as an error of
/// the logit.
constexpr double exp_rounding = 64.0 * unit_roundoff;
/// Smaller than any rounding error of a bound, times the number of rows.
constexpr double negligible = 0x1p-100;

/// At least Σ p_j |A_j − mean|: a mean of lengths is at most the root of that of their squares,
/// Σ p_j |A_j|² − |mean|².
double spread(const LogitRows& logits, std::span<const double> probabilities, std::span<const double> mean) {
  const double square = plain_dot(probabilities, logits.squares);
  const double terms = static_cast<double>(probabilities.size() + mean.size() + 16);
  return std::sqrt(std::max(0.0, square - plain_dot(mean, mean)) + 8.0 * terms * unit_roundoff * square);
}

}  // namespace

std::vector<double> squared_lengths(MatrixView<const double> rows) {
  std::vector<double> squares;
  squares.reserve(rows.rows());
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    squares.push_back(plain_dot(rows.row(row), rows.row(row)));
  }
  return squares;
}

// Let p be the probabilities of logits s_j + e_j, s the logits at u, and h = g/|g|. Then
//   ∂B/∂s_j = p_j ((h − u)·(mean − A_j) + e_j − Σ p_k e_k),
//   Σ |∂B/∂s_j| <= |h − u| Σ p_j |A_j − mean| + 2 max |e|.
// On the way to other logits, up to d = `error` + `rounding` + `exp_rounding` away, each p_j changes by a
// factor of at most 1 + η = e^2d, so g by at most η spread, and h by at most twice that over |g|.
Bounded tangent_bound(const LogitRows& logits, std::size_t target, std::span<const double> point,
                      std::span<const double> probabilities, std::span<const double> mean, double value,
                      double error, double rounding) {
  std::vector<double> gradient(logits.rows.row(target).begin(), logits.rows.row(target).end());
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= mean[i];
  const double length = euclidean_norm(gradient);
  const double distance = error + rounding + exp_rounding;
  const double change = std::expm1(2.0 * distance);
  const double wide = spread(logits, probabilities, mean);
  double square = 0.0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double apart = (length > 0.0 ? gradient[i] / length : 0.0) - point[i];
    square += apart * apart;
  }
  const double turn = change * wide < length ? 2.0 * change * wide / length : 2.0;
  const double slope = (1.0 + 2.0 * change) * wide * (std::sqrt(square) + turn) + 2.0 * distance;
  return {value + length - plain_dot(gradient, point), distance * slope};
}

std::vector<PointWeight> sizable_weights(std::span<const double> probabilities) {
  std::vector<PointWeight> weights;
  for (std::size_t j = 0; j < probabilities.size(); ++j) {
    if (probabilities[j] >= negligible) weights.push_back({j, probabilities[j]});
  }
  return weights;
}

}  // namespace normscope::convex
