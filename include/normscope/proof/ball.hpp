#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/proof/minimum_norm.hpp>
#include <normscope/proof/separate.hpp>

/// Whether a point of the unit ball satisfies linear inequalities strictly, with a proof of either answer:
///   max over |u| <= 1 of min_j (row_j·u + offset_j)  =  min over weights λ of |Σ λ_j row_j| + Σ λ_j offset_j
/// so a point bounds the largest margin from below and weights bound it from above.
namespace normscope::proof {

struct BallMargin {
  Answer answer = Answer::undecided;
  std::vector<double> point{};        ///< |u| <= 1
  std::vector<PointWeight> shares{};  ///< weights λ > 0 with sum 1, by row
  /// Proved, with rounding included: every row has at least `lower` at the point; at no point do all exceed
  /// `upper`.
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  double scale = 0.0;  ///< largest length of a row plus size of its offset
  double tolerance = 0.0;
  std::size_t iterations = 0;
};

/// Yes when a point with a proved positive margin is found, no when no margin can exceed `tolerance` times
/// the scale, undecided when neither holds.
///
/// Shapes    rows (any >= 1, any width >= 1), offsets (rows)
///
/// Errors    Shape; Argument for an entry that is not finite, or a row longer than half the largest double
///
/// Accuracy  the answer and both bounds are proved for any rows; they are at most 1e-12 scale apart where no
///           row with its offset is 1e10 times as long as another and the active rows are
///           independent to about 1e-10 (tests: Ball.BoundsMeet, Ball.BoundsMeetNearDegeneracy); for rows
///           that nearly cancel or coincide there is no guarantee for the gap, which was at most 1e-10 scale
///           in random cases (test: Ball.BoundsBracketTheMarginWhereRowsNearlyCancel), for numbers whose
///           squares neither overflow nor underflow
///
/// Cost      O((rows + k) width + k²) per iteration, k the number of active rows
[[nodiscard]] BallMargin largest_margin(MatrixView<const double> rows, std::span<const double> offsets,
                                        double tolerance = 1e-12);

/// Lower bound of min_j (row_j·point + offset_j) from the data alone, rounding included; −infinity for a
/// point that is not finite or outside the ball. Rows whose sign rounding could change are summed again in
/// twice the precision.
[[nodiscard]] double verified_lower(MatrixView<const double> rows, std::span<const double> offsets,
                                    std::span<const double> point);

/// |Σ λ row| + Σ λ offset from the data alone, after the weights are divided by their sum, rounding added;
/// +infinity for weights that are negative, not finite, without a sum, or on rows that are not there.
[[nodiscard]] double verified_upper(MatrixView<const double> rows, std::span<const double> offsets,
                                    const std::vector<PointWeight>& shares);

/// Whether the data prove the answer and both bounds; trusts nothing else in `margin`.
[[nodiscard]] bool verify(MatrixView<const double> rows, std::span<const double> offsets,
                          const BallMargin& margin);

/// `largest_margin` over a growing set of rows: an active-set method that continues from its current weights
/// when rows are added. Its answers are not proofs: see the `verified_` functions.
///
/// Source    [Wolfe 1976], with the ball's support function in place of the square
class BallSolver {
 public:
  explicit BallSolver(std::size_t width);
  BallSolver(BallSolver&&) noexcept;
  BallSolver& operator=(BallSolver&&) noexcept;
  ~BallSolver();

  /// Requires  finite numbers whose squares neither overflow nor underflow; an id that is not held yet
  void add(std::uint64_t id, std::span<const double> row, double offset);
  [[nodiscard]] bool holds(std::uint64_t id) const;
  [[nodiscard]] std::size_t rows() const;

  struct State {
    std::vector<double> point{};
    std::vector<PointWeight> shares{};
    double lower = 0.0;  ///< over the rows held, to rounding
    double upper = 0.0;
    std::size_t iterations = 0;
  };
  /// Iterates until upper − lower is at most `tolerance` times the largest row, upper at most `enough`, or
  /// rounding alone is left.
  ///
  /// Requires  rows() >= 1
  [[nodiscard]] State solve(double tolerance, double enough);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

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

// The least and the largest length of an affine image of the unit ball, |M u + m| over |u| <= 1, each proved
// from both sides. The largest is not a convex problem, but solvable: the trust-region subproblem.

struct ExtremeLength {
  std::vector<double> point{};  ///< |u| <= 1
  /// The y by which (yᵀm − |Mᵀy|)/|y| proves `lower` of a least length, M u + m up to rounding; empty
  /// where that is 0.
  std::vector<double> dual{};
  double multiplier = 0.0;  ///< of |u|² <= 1; at most the largest double
  /// The extreme provably lies in [lower, upper], rounding included. `point` attains `upper` of a least
  /// length and `lower` of a largest length.
  double lower = 0.0;
  double upper = 0.0;
};

/// min over |u| <= 1 of |M u + m|.
///
/// Source    [Moré, Sorensen 1983, Computing a trust region step], by one singular value decomposition
///
/// Shapes    matrix (rows >= 1, width >= 1), offset (rows)
///
/// Errors    Shape; Argument for an entry that is not finite
///
/// Accuracy  upper − lower <= (1e-12 + 8 width² 2⁻⁵³) (|M|_F + |m|) (test: TrustRegion.BoundsMeet), for
///           numbers of any size (test: TrustRegion.NumbersOfAnySize)
///
/// Cost      O((rows + width) · min(rows, width)²)
[[nodiscard]] ExtremeLength least_length(MatrixView<const double> matrix, std::span<const double> offset);

/// max over |u| <= 1 of |M u + m|; otherwise as `least_length`.
[[nodiscard]] ExtremeLength largest_length(MatrixView<const double> matrix, std::span<const double> offset);

/// Bounds of the least length from the data, a point and a dual y alone: |M u + m| above, and below
/// (yᵀm − |Mᵀy|)/|y|. Upper is +infinity for a point that is not finite or outside the ball, lower is 0 for a
/// y that is 0, not finite or of another size.
[[nodiscard]] ExtremeLength proved_least(MatrixView<const double> matrix, std::span<const double> offset,
                                         std::span<const double> point, std::span<const double> dual);

/// Bounds of the largest length from the data, a point and a multiplier alone: |M u + m| below, and above,
/// once A = μI − MᵀM is proved positive definite by a Cholesky factor, the square root of
/// μ + |m|² + bᵀA⁻¹b with b = Mᵀm. μ is the first not below `multiplier` to pass.
[[nodiscard]] ExtremeLength proved_largest(MatrixView<const double> matrix, std::span<const double> offset,
                                           std::span<const double> point, double multiplier);

}  // namespace normscope::proof
