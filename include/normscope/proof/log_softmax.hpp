#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/proof/minimum_norm.hpp>

namespace normscope::proof {

/// Proved bounds of one row's largest log-probability; they include rounding.
struct LogSoftmaxMaximum {
  std::vector<double> point{};  ///< |u| <= 1, where `lower` is attained
  /// Where f(u) + |g| − g·u is `upper`, g the gradient of f at u; perhaps outside the ball, as f is concave
  /// everywhere. Empty while `upper` is 0.
  std::vector<double> tangent{};
  /// Probabilities p of rows, where those at `tangent` depend on the rounding of logits too much; else empty:
  ///   |Σ p_j (A_i − A_j)| + Σ p_j (a_i − a_j) + Σ p_j log p_j <= `upper`.
  std::vector<PointWeight> weights{};
  double lower = -std::numeric_limits<double>::infinity();
  double upper = 0.0;
  std::size_t iterations = 0;
};

struct LogSoftmaxOptions {
  double gap = 1e-3;             ///< between the bounds
  std::size_t iterations = 300;  ///< of the gradient method, per target
  /// Operations that Newton's method may take for a target that the gradient method does not solve.
  double newton_work = 2e10;
  /// Error of the logits that rows and offsets stand for. Without `LogSoftmaxMaximum::weights`, whoever
  /// computes the probabilities at `tangent` from logits with this error gets no larger bound than `upper`
  /// (test: LogSoftmax.OthersFindNoLargerBound).
  double rounding = 0.0;
  unsigned threads = 1;
  Progress progress{};
};

/// max over |u| <= 1 of log softmax(rows u + offsets)_target for each target, in batches: by accelerated
/// projected gradient steps from the target's own direction, in float32 if that suffices, and for the
/// remaining targets by Newton's method over the rows with non-negligible probability. The objective f is
/// concave, so its gradient g at any point bounds it from above: f(u) + |g| − g·u. Both bounds are computed
/// in float64.
///
/// Source    [Beck, Teboulle 2009]; [Moré, Sorensen 1983]; [Frank, Wolfe 1956] for the bound
///
/// Shapes    rows (any >= 1, width), offsets (rows), targets: row numbers
///
/// Errors    Shape; Argument for numbers beyond 2²⁰⁰; Cancelled
///
/// Accuracy  upper − lower <= `gap` where iterations and work suffice; both hold in any case
///           (tests: LogSoftmax.BoundsBracketLongRuns, LogSoftmax.AgreesWithASearchAtAnySizeOfLogits);
///           independent of the number of threads
///
/// Cost      4 targets · rows · width operations and targets · rows exponentials per iteration; five
///           numbers per row and target of a batch of 32
[[nodiscard]] std::vector<LogSoftmaxMaximum> largest_log_softmax(MatrixView<const double> rows,
                                                                 std::span<const double> offsets,
                                                                 std::span<const std::size_t> targets,
                                                                 const LogSoftmaxOptions& options = {});

/// The bounds that given points prove, two points for each target, as `largest_log_softmax` returns them;
/// `rounding` as in `LogSoftmaxOptions`.
///
/// Errors    as above; Shape for a point of another width
[[nodiscard]] std::vector<LogSoftmaxMaximum> prove_log_softmax(MatrixView<const double> rows,
                                                               std::span<const double> offsets,
                                                               std::span<const std::size_t> targets,
                                                               const std::vector<std::vector<double>>& points,
                                                               double rounding = 0.0, unsigned threads = 1);

/// log softmax(rows point + offsets)_target at any point, with a bound of its rounding error.
///
/// Errors    as above
[[nodiscard]] Bounded log_softmax_at(MatrixView<const double> rows, std::span<const double> offsets,
                                     std::size_t target, std::span<const double> point);

}  // namespace normscope::proof
