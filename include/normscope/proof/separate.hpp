#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/proof/minimum_norm.hpp>

/// Whether a hyperplane separates two finite sets strictly, with a proof of either answer.
namespace normscope::proof {

enum class Answer { yes, no, undecided };

/// "yes", "no" or "undecided".
[[nodiscard]] std::string_view to_string(Answer answer);

/// A rational weight: `numerator` over the `denominator` of the whole certificate.
struct ExactShare {
  std::size_t row = 0;
  std::string numerator{};  ///< a positive integer, decimal
  double weight = 0.0;      ///< the same number as a double, to two roundings
};

struct ExactSeparation {
  /// yes: the hulls are disjoint; no: they have a common point; undecided only beyond a limit, see `reason`.
  Answer answer = Answer::undecided;
  /// yes: integers, decimal, with normalᵀa > normalᵀb for every row a of A and b of B.
  std::vector<std::string> normal{};
  /// The same direction in doubles, each to two roundings, the largest entry from 0.1 to 1 in size.
  std::vector<double> direction{};
  /// no: Σ numerator · row over `a` equals that over `b`, and the numerators of each sum to `denominator`.
  std::vector<ExactShare> a{};
  std::vector<ExactShare> b{};
  std::string denominator{};
  std::string reason{};  ///< undecided: which limit was met
  std::size_t pivots = 0;
};

struct Separation {
  Answer answer = Answer::undecided;
  std::vector<double> normal{};  ///< unit to rounding; empty when the sets have the same mean
  /// Between normalᵀb and normalᵀa, if a double is.
  double offset = 0.0;
  /// Proved lower bound of the distance between the two sets along `normal`. <= 0 proves nothing.
  double margin = 0.0;
  /// Weights λ on rows of A and μ on rows of B, each with sum 1: a common point of the hulls when
  /// `answer` is no, their nearest points otherwise.
  std::vector<PointWeight> a{};
  std::vector<PointWeight> b{};
  /// |Σλa − Σμb|, rounding added: no hyperplane has a larger margin. When `answer` is no, at most `tolerance`
  /// times `scale`, and in each column at most `tolerance` times Σλ|a − h| + Σμ|b − h|, h the heaviest row of
  /// A.
  double residual = 0.0;
  /// Largest distance of a coordinate from the mean of all rows.
  double scale = 0.0;
  double tolerance = 0.0;
  /// What `decide_exactly` found, which then proves `answer`.
  std::optional<ExactSeparation> exact{};
};

/// Separates the rows of `a` from the rows of `b`. Yes when a hyperplane with a proved margin is found, no
/// when the hulls meet to `tolerance` and twice the precision does not show them apart, undecided otherwise:
/// then the sets are apart or overlap by about the rounding of the data, or have rows or columns far smaller
/// than others.
///
/// Source    [Wolfe 1976, Finding the nearest point in a polytope]; refined as in [Björck 1967]
///
/// Shapes    a, b (any rows >= 1, one width >= 1)
///
/// Errors    Shape; Argument for rows that `expect_accepted` refuses; Cancelled
///
/// Accuracy  the largest margin is in [margin, residual], proved, and these are within 1e-9 of it and
///           2^-46 of `scale` of each other (tests: Separate.MarginIsTheLargest,
///           Separate.MarginsOfIllConditionedSets)
///
/// Cost      O(rows width) for each pass over all rows, which about ten iterations of O(k width + k²) share,
///           k the number of rows with weight
[[nodiscard]] Separation separate(MatrixView<const double> a, MatrixView<const double> b,
                                  double tolerance = 1e-12, unsigned threads = 0,
                                  const Progress& progress = {});

/// The margin by which `normal` separates the rows, from the data alone: a lower bound in exact
/// arithmetic; −infinity for a normal that is zero or not finite.
[[nodiscard]] double verified_margin(MatrixView<const double> a, MatrixView<const double> b,
                                     const std::vector<double>& normal);

/// |Σλa − Σμb| from the data alone, after the weights are divided by their sums: an upper bound in exact
/// arithmetic; +infinity for weights that are negative, not finite, without a sum, or on rows that are not
/// there.
[[nodiscard]] double verified_residual(MatrixView<const double> a, MatrixView<const double> b,
                                       const std::vector<PointWeight>& weights_a,
                                       const std::vector<PointWeight>& weights_b);

/// Whether the data prove the answer, its margin and its residual; trusts nothing else in it.
[[nodiscard]] bool verify(MatrixView<const double> a, MatrixView<const double> b,
                          const Separation& separation);

}  // namespace normscope::proof
