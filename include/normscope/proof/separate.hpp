#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
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
  /// That direction in doubles, each to two roundings, the largest entry from 0.1 to 1 in size.
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

// Decides linear separability in rational arithmetic: every double is a rational number, so there is an
// exact answer, and a certificate of integers that can be checked independently.

/// Start of the simplex method, from floating-point arithmetic. It need not be correct; a better one needs
/// fewer pivots.
struct ExactStart {
  std::vector<PointWeight> a{};  ///< rows and weights that nearly solve Σλa = Σμb
  std::vector<PointWeight> b{};
  std::vector<DoubleDouble> normal{};  ///< a direction that may separate; empty for none
};

struct ExactLimits {
  std::size_t order = 2048;       ///< linear systems: features that vary, and two
  std::size_t pivots = 2000;      ///< exchanges of a basis row
  std::size_t bits = 1UL << 31U;  ///< of the matrix of a linear system
};

/// Whether the convex hull of the rows of `a` and that of the rows of `b` are disjoint, exactly: the linear
/// program Σλa = Σμb, Σλ = Σμ = 1, λ, μ >= 0 by the simplex method from the rows of `start`, with every basic
/// solution and every price rational. To ask whether one row lies in the hull of others, let `a` be that row;
/// rows of `b` named in `left_out` do not belong to the set.
///
/// Source    [Dantzig 1963, phase 1], [Bland 1977]; systems solved by [Dixon 1982]; from a floating-point
///           basis as in [Applegate, Cook, Dash, Espinoza 2007]
///
/// Shapes    a, b (any rows >= 1, one width >= 1); at least one row of b is not left out
///
/// Errors    Shape; Argument for an entry that is not finite; Unsupported where built without GMP; Cancelled
///
/// Accuracy  exact (tests: ExactSeparation.CertificatesHoldInIntegers, ExactSeparation.OneBitDecides)
///
/// Cost      from a good start one system of order r = rank + 2: O(r³) word operations, and O(r² bits) for
///           solutions of `bits` bits; each pivot three systems and O(rows width)
[[nodiscard]] ExactSeparation separate_exactly(MatrixView<const double> a, MatrixView<const double> b,
                                               const ExactStart& start = {},
                                               std::span<const std::size_t> left_out = {},
                                               const ExactLimits& limits = {}, unsigned threads = 0,
                                               const Progress& progress = {});

/// Decides exactly, starting from the rows and the normal that `separate` found: sets
/// `exact`, and `answer` to what that proves.
///
/// Errors    as `separate_exactly`
void decide_exactly(MatrixView<const double> a, MatrixView<const double> b, Separation& separation,
                    const ExactLimits& limits = {}, unsigned threads = 0, const Progress& progress = {});

/// Whether the certificate proves the answer, in integers; false for an answer that is undecided.
///
/// Errors    Unsupported where built without GMP
[[nodiscard]] bool verify(MatrixView<const double> a, MatrixView<const double> b,
                          const ExactSeparation& separation, std::span<const std::size_t> left_out = {});

/// Whether this build has `separate_exactly`: all builds but WebAssembly.
[[nodiscard]] bool has_exact_separation();

}  // namespace normscope::proof
