#pragma once

#include <string_view>
#include <vector>

#include <normscope/convex/minimum_norm.hpp>
#include <normscope/core/view.hpp>

/// Whether a hyperplane separates two finite sets strictly, with a proof of either answer.
namespace normscope::convex {

enum class Answer { yes, no, undecided };

/// "yes", "no" or "undecided".
[[nodiscard]] std::string_view to_string(Answer answer);

struct Separation {
  Answer answer = Answer::undecided;
  std::vector<double> normal{};  ///< unit: normalᵀa > offset > normalᵀb
  double offset = 0.0;
  /// Distance between the two sets along `normal`, proved: rounding is taken off. <= 0 proves nothing.
  double margin = 0.0;
  /// Weights λ on rows of A and μ on rows of B, each with sum 1: what the hulls have in common when
  /// `answer` is no, their nearest points otherwise.
  std::vector<Share> a{};
  std::vector<Share> b{};
  /// |Σλa − Σμb|: at most `tolerance` times `scale` when `answer` is no; the largest margin there can be
  /// otherwise.
  double residual = 0.0;
  double scale = 0.0;  ///< largest distance of a coordinate from the mean of all rows
  double tolerance = 0.0;
};

/// Separates the rows of `a` from the rows of `b`. Yes when a hyperplane with a proved margin is found,
/// no when the hulls meet to `tolerance`, undecided when neither holds.
///
/// Shapes    a, b (any rows >= 1, one width >= 1)
/// Errors    Shape; Argument for an entry that is not finite; Cancelled
/// Accuracy  the margin is within 1e-9 relative of the largest (test: Separate.MarginIsTheLargest)
/// Cost      O((rows + k) width + k²) an iteration, k the rows that carry the margin
[[nodiscard]] Separation separate(MatrixView<const double> a, MatrixView<const double> b,
                                  double tolerance = 1e-12, unsigned threads = 0,
                                  const Progress& progress = {});

/// The margin by which `normal` separates the rows, from the data alone: a lower bound in exact
/// arithmetic, rounding taken off; −infinity for a normal that is zero or not finite.
[[nodiscard]] double verified_margin(MatrixView<const double> a, MatrixView<const double> b,
                                     const std::vector<double>& normal);

/// |Σλa − Σμb| from the data alone, after the weights are divided by their sums; +infinity for weights
/// that are negative, not finite, without a sum, or on rows that are not there.
[[nodiscard]] double verified_residual(MatrixView<const double> a, MatrixView<const double> b,
                                       const std::vector<Share>& weights_a,
                                       const std::vector<Share>& weights_b);

/// Whether the data bear out the answer, its margin and its residual; trusts nothing else in it.
[[nodiscard]] bool verify(MatrixView<const double> a, MatrixView<const double> b,
                          const Separation& separation);

}  // namespace normscope::convex
