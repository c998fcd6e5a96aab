#include "log_softmax_ascent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Cholesky>

#include <normscope/core/eigen/linear_algebra.hpp>

namespace normscope::proof {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Factor by which the logits grow from one maximum to the next.
constexpr double growth = 4.0;
/// Accuracy, in log probability, of the intermediate maxima.
constexpr double on_the_way = 0.25;
constexpr std::size_t most_halvings = 40;
/// Regularization relative to the trace of the curvature: directions without curvature keep their coordinate.
constexpr double ridge = 1e-14;

/// The rows minus the target's, in coordinates of their span.
struct Reduced {
  MatrixXd basis{};        ///< width × rank, orthonormal
  MatrixXd differences{};  ///< rows × rank: row j minus the target's
  VectorXd offsets{};      ///< offsets minus the target's
};

Reduced reduce(MatrixView<const double> rows, std::span<const double> offsets, std::size_t target) {
  const Index count = static_cast<Index>(rows.rows());
  const Index width = static_cast<Index>(rows.width());
  const Eigen::Map<const VectorXd> own(rows.row(target).data(), width);
  MatrixXd columns(width, count);
  Reduced result;
  result.offsets.resize(count);
  for (Index j = 0; j < count; ++j) {
    const std::size_t row = static_cast<std::size_t>(j);
    columns.col(j) = Eigen::Map<const VectorXd>(rows.row(row).data(), width) - own;
    result.offsets[j] = offsets[row] - offsets[target];
  }
  result.basis = thin_qr(columns).basis;
  result.differences = columns.transpose() * result.basis;
  return result;
}

/// Value, probabilities and bound of the maximum for logits multiplied by `size`.
struct Look {
  double value = 0.0;
  double bound = 0.0;
  VectorXd weights{};
  VectorXd mean{};  ///< Σ p (row − target's)
};

Look look(const Reduced& problem, double size, const VectorXd& point) {
  Look result;
  result.weights = size * (problem.differences * point + problem.offsets);
  const double highest = result.weights.maxCoeff();
  result.weights = (result.weights.array() - highest).exp();
  const double total = result.weights.sum();
  result.weights /= total;
  // The target's own logit is zero after the subtraction.
  result.value = -highest - std::log(total);
  result.mean = size * (problem.differences.transpose() * result.weights);
  result.bound = result.value + result.mean.norm() + result.mean.dot(point);
  return result;
}

/// The x in the ball that maximizes gᵀx − xᵀH x/2, for positive definite H.
VectorXd largest_in_ball(MatrixXd hessian, const VectorXd& gradient) {
  const Index n = gradient.size();
  const VectorXd diagonal = hessian.diagonal();
  double low = 0.0;
  double high = gradient.norm();
  double shift = 0.0;
  VectorXd x = VectorXd::Zero(n);
  for (int step = 0; step < 60; ++step) {
    hessian.diagonal() = diagonal.array() + shift;
    const Eigen::LLT<MatrixXd> factors(hessian);
    if (factors.info() != Eigen::Success) {
      low = std::max(low, shift);
      shift = low > 0.0 ? 2.0 * low : 1e-12 * diagonal.maxCoeff();
      continue;
    }
    x = factors.solve(gradient);
    const double length = x.norm();
    if (shift == 0.0 && length <= inside_ball) return x;
    if (std::abs(length - 1.0) < 1e-10) break;
    (length > 1.0 ? low : high) = shift;
    // Newton's method for 1/|x| = 1, which is nearly linear in the shift.
    const VectorXd half = factors.matrixL().solve(x);
    const double slope = half.squaredNorm();
    double next = slope > 0.0 ? shift + (length - 1.0) * length * length / slope : low;
    if (!(next > low) || !(next < high)) next = 0.5 * (low + high);
    if (next == shift || high - low <= 1e-15 * high) break;
    shift = next;
  }
  const double length = x.norm();
  return length > inside_ball ? VectorXd(x * (inside_ball / length)) : x;
}

}  // namespace

double newton_step_cost(std::size_t rows, std::size_t width) {
  const double rank = static_cast<double>(std::min(rows, width));
  return static_cast<double>(rows) * rank * rank + 4.0 * rank * rank * rank;
}

SoftmaxPeak log_softmax_peak(MatrixView<const double> rows, std::span<const double> offsets,
                             std::size_t target, double gap, std::size_t most_steps) {
  const Reduced problem = reduce(rows, offsets, target);
  const Index rank = problem.basis.cols();
  const double largest =
      problem.differences.rowwise().norm().maxCoeff() + problem.offsets.cwiseAbs().maxCoeff();
  VectorXd point = VectorXd::Zero(rank);
  SoftmaxPeak peak;
  double size = largest > 1.0 ? 1.0 / largest : 1.0;
  Look here = look(problem, size, point);
  while (peak.steps < most_steps) {
    const bool last = size >= 1.0;
    if (here.bound - here.value <= (last ? gap : on_the_way)) {
      if (last) break;
      size = std::min(1.0, growth * size);
      here = look(problem, size, point);
      continue;
    }
    ++peak.steps;
    // Hessian Σ p d dᵀ − m mᵀ of the logits multiplied by `size`, m their mean.
    MatrixXd centred = size * problem.differences;
    centred.rowwise() -= here.mean.transpose();
    MatrixXd hessian = centred.transpose() * here.weights.asDiagonal() * centred;
    hessian.diagonal().array() += ridge * hessian.trace() + std::numeric_limits<double>::min();
    const VectorXd to = largest_in_ball(hessian, VectorXd(hessian * point - here.mean));
    const VectorXd way = to - point;
    const double promised = -here.mean.dot(way);
    double step = 1.0;
    Look there = look(problem, size, to);
    for (std::size_t halving = 0; halving < most_halvings; ++halving) {
      if (there.value >= here.value + 0.1 * step * promised) break;
      step *= 0.5;
      there = look(problem, size, point + step * way);
    }
    if (!(there.value > here.value) && !(there.bound < here.bound)) {
      // Only rounding remains at this size.
      if (last) break;
      size = std::min(1.0, growth * size);
      here = look(problem, size, point);
      continue;
    }
    point += step * way;
    here = std::move(there);
  }
  const VectorXd whole = problem.basis * point;
  peak.point.assign(whole.data(), whole.data() + whole.size());
  project_into_ball(peak.point);
  return peak;
}

}  // namespace normscope::proof
