#include <normscope/convex/log_softmax.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/numeric/product.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::convex {
namespace {

constexpr double inside = 1.0 - 0x1p-49;

double dot(std::span<const double> a, std::span<const double> b) {
  double total = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}

/// Into the ball, along the radius.
void project(std::vector<double>& point) {
  const double length = euclidean_norm(point);
  if (length <= inside) return;
  for (double& value : point) value *= inside / length;
}

/// One target's climb.
struct Climb {
  std::size_t target = 0;
  LogSoftmaxMaximum best{};
  std::vector<double> point{};
  std::vector<double> gradient{};
  std::vector<double> best_gradient{};
  std::vector<double> from{};  ///< the point before
  std::vector<double> from_gradient{};
  double step = 0.0;

  [[nodiscard]] bool open(double gap) const { return best.upper - best.lower > gap; }

  void start(MatrixView<const double> rows) {
    const std::span<const double> row = rows.row(target);
    point.assign(row.begin(), row.end());
    const double length = euclidean_norm(row);
    for (double& value : point) value = length > 0.0 ? value / length : 0.0;
    project(point);
  }

  /// Takes value and gradient at the point into account and moves on. `slack` bounds their rounding.
  void advance(double value, double slack) {
    const double bound = value + euclidean_norm(gradient) - dot(gradient, point) + slack;
    if (bound < best.upper) {
      best.upper = bound;
      best.tangent = point;
    }
    if (value - slack > best.lower) {
      best.lower = value - slack;
      best.point = point;
      best_gradient = gradient;
    }
    ++best.iterations;
    if (from.empty()) {
      const double length = euclidean_norm(gradient);
      step = length > 0.0 ? 0.5 / length : 0.0;
    } else if (value + slack < best.lower - 1.0 - 0.5 * std::abs(best.lower)) {
      // Far too long a step: again from the best point.
      step *= 0.1;
      point = best.point;
      gradient = best_gradient;
    } else {
      double moved = 0.0;
      double turned = 0.0;
      for (std::size_t i = 0; i < point.size(); ++i) {
        const double by = point[i] - from[i];
        moved += by * by;
        turned += by * (from_gradient[i] - gradient[i]);
      }
      step =
          turned > 1e-12 * step * moved && turned > 0.0 ? std::min(moved / turned, 1e3 * step) : 10.0 * step;
    }
    from = point;
    from_gradient = gradient;
    for (std::size_t i = 0; i < point.size(); ++i) point[i] += step * gradient[i];
    project(point);
  }
};

/// Values and gradients of some climbs at their points.
std::vector<double> evaluate(MatrixView<const double> rows, std::span<const double> offsets,
                             const std::vector<Climb*>& climbs) {
  const std::size_t width = rows.width();
  std::vector<double> points;
  for (const Climb* climb : climbs) points.insert(points.end(), climb->point.begin(), climb->point.end());
  std::vector<double> shares(climbs.size() * rows.rows());
  const MatrixView<double> share(shares.data(), climbs.size(), rows.rows());
  const MatrixView<double> point(points.data(), climbs.size(), width);
  multiply(point, Factor<double>(rows).transposed(), share);
  std::vector<double> values;
  for (std::size_t c = 0; c < climbs.size(); ++c) {
    const std::span<double> scores = share.row(c);
    double highest = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < scores.size(); ++j) highest = std::max(highest, scores[j] += offsets[j]);
    const double own = scores[climbs[c]->target];
    double total = 0.0;
    for (double& score : scores) total += score = std::exp(score - highest);
    for (double& score : scores) score /= total;
    values.push_back(own - highest - std::log(total));
  }
  multiply(share, rows, point);
  for (std::size_t c = 0; c < climbs.size(); ++c) {
    const std::span<const double> row = rows.row(climbs[c]->target);
    climbs[c]->gradient.resize(width);
    for (std::size_t i = 0; i < width; ++i) climbs[c]->gradient[i] = row[i] - point.row(c)[i];
  }
  return values;
}

}  // namespace

std::vector<LogSoftmaxMaximum> largest_log_softmax(MatrixView<const double> rows,
                                                   std::span<const double> offsets,
                                                   std::span<const std::size_t> targets, double gap,
                                                   std::size_t iterations) {
  if (rows.rows() == 0 || rows.width() == 0 || offsets.size() != rows.rows() ||
      std::any_of(targets.begin(), targets.end(),
                  [&](std::size_t target) { return target >= rows.rows(); })) {
    throw Error(ErrorCode::Shape,
                fmt::format("log softmax: {} x {} rows with {} offsets, expected an offset a row and targets "
                            "among them",
                            rows.rows(), rows.width(), offsets.size()));
  }
  double scale = 0.0;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    scale = std::max(scale, euclidean_norm(rows.row(row)) + std::abs(offsets[row]));
  }
  // Products of `width` terms and sums of `rows`, each with its share of u; four of the former meet.
  const double slack =
      0x1p-53 * (8.0 * static_cast<double>(rows.width() + 16) + 4.0 * static_cast<double>(rows.rows())) *
      (scale + 1.0);
  std::vector<Climb> climbs;
  for (const std::size_t target : targets) {
    climbs.push_back({.target = target});
    climbs.back().start(rows);
  }
  for (std::size_t iteration = 0; iteration < iterations; ++iteration) {
    std::vector<Climb*> open;
    for (Climb& climb : climbs) {
      if (climb.open(gap)) open.push_back(&climb);
    }
    if (open.empty()) break;
    const std::vector<double> values = evaluate(rows, offsets, open);
    for (std::size_t c = 0; c < open.size(); ++c) open[c]->advance(values[c], slack);
  }
  std::vector<LogSoftmaxMaximum> results;
  for (Climb& climb : climbs) results.push_back(std::move(climb.best));
  return results;
}

}  // namespace normscope::convex
