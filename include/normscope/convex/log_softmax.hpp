#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::convex {

/// Bounds of one row's largest log-probability, proved, rounding taken off.
struct LogSoftmaxMaximum {
  std::vector<double> point{};    ///< |u| <= 1, where `lower` is attained
  std::vector<double> tangent{};  ///< |u| <= 1, where f(u) + |g| − g·u is `upper`; empty while that is 0
  double lower = -std::numeric_limits<double>::infinity();
  double upper = 0.0;
  std::size_t iterations = 0;
};

/// max over |u| <= 1 of log softmax(rows u + offsets)_target for each target, by projected gradient steps of
/// Barzilai and Borwein's length from the target's own direction. What is maximized is concave, so its
/// gradient g bounds it from above: f(u) + |g| − g·u.
///
/// Source    [Barzilai, Borwein 1988]; [Frank, Wolfe 1956] for the bound
/// Shapes    rows (any >= 1, width), offsets (rows), targets: row numbers
/// Errors    Shape
/// Accuracy  upper − lower <= `gap` where the iterations suffice; both hold in any case
///           (test: LogSoftmax.BoundsBracketLongRuns)
/// Cost      4 targets · rows · width operations and targets · rows exponentials an iteration, one thread
[[nodiscard]] std::vector<LogSoftmaxMaximum> largest_log_softmax(MatrixView<const double> rows,
                                                                 std::span<const double> offsets,
                                                                 std::span<const std::size_t> targets,
                                                                 double gap = 1e-3,
                                                                 std::size_t iterations = 300);

}  // namespace normscope::convex
