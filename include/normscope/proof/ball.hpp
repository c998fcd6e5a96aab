#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

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

}  // namespace normscope::proof
