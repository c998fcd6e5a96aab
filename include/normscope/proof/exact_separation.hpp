#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/proof/separate.hpp>

/// Decides linear separability in rational arithmetic: every double is a rational number, so there is an
/// exact answer, and a certificate of integers that can be checked independently.
namespace normscope::proof {

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
