#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>

namespace normscope {

/// A matrix factor: element (i, j) is at data[i · row_step + j · column_step], so a transpose is a view of
/// the same memory.
template <typename T>
struct Factor {
  const T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t row_step = 0;
  std::size_t column_step = 1;

  Factor() = default;
  Factor(const T* from, std::size_t row_count, std::size_t column_count, std::size_t step,
         std::size_t step_between_columns = 1)
      : data(from),
        rows(row_count),
        columns(column_count),
        row_step(step),
        column_step(step_between_columns) {}
  // NOLINTNEXTLINE(google-explicit-constructor): implicit conversion from a matrix
  Factor(MatrixView<const T> matrix)
      : Factor(matrix.data(), matrix.rows(), matrix.width(), matrix.stride()) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Factor(MatrixView<T> matrix) : Factor(MatrixView<const T>(matrix)) {}

  [[nodiscard]] Factor transposed() const { return {data, columns, rows, column_step, row_step}; }
};

/// Whether a product replaces its target or is added to it.
enum class Into { replace, add };

/// c = a b or c += a b, on the calling thread; the rows or columns of c can be split among threads.
///
/// Shapes    a (m × k), b (k × n), c (m × n); c overlaps neither factor
///
/// Accuracy  |computed − exact| <= γ Σ |a_ip| |b_pj|, γ = (k + k/256 + 1) u, per entry (plus |c| u for add,
///           plus k times the least positive number where products underflow);
///           an entry depends only on its row of a and its column of b, not on m, n or its position
///           (tests: Product.IsWithinItsBound, Product.EntriesDoNotDependOnTheirNeighbours)
///
/// Cost      2 m k n operations near the machine's peak; buffers of about 2 MB a thread, kept between calls
void multiply(Factor<double> a, Factor<double> b, MatrixView<double> c, Into into = Into::replace);
void multiply(Factor<float> a, Factor<float> b, MatrixView<float> c, Into into = Into::replace);

/// The singular value decomposition A = U diag(values) Vᵀ, with rank = min(rows, columns) values in
/// decreasing order.
///
/// Shapes    left (rows, rank) and right (columns, rank), row-major, columns of length 1; values (rank)
struct Svd {
  std::vector<double> left;
  std::vector<double> values;
  std::vector<double> right;
};

/// Which singular vectors are computed; with `left`, `Svd::right` is empty.
enum class SingularVectors { left, both };

/// The singular value decomposition of A, by Eigen's divide and conquer.
///
/// Accuracy  |A − U diag(values) Vᵀ|, |UᵀU − 1| and |VᵀV − 1| a small multiple of rank · u of |A| and of 1
///           (test: Svd.GivesBackItsMatrix)
///
/// Limits    NaN throughout if an entry of A is not finite
///
/// Cost      O(rows · columns · rank)
[[nodiscard]] Svd singular_value_decomposition(Factor<double> a,
                                               SingularVectors wanted = SingularVectors::both);

/// A root ζ = poles[origin] + offset, stored separately because the offset can be far smaller than the pole's
/// rounding error; `origin` is the nearer of the two poles around the root.
struct SecularRoot {
  std::size_t origin = 0;
  double offset = 0.0;
};

/// The roots of   f(ζ) = Σ_i weights_i / (poles_i − ζ),   one strictly between each two
/// neighbouring poles, in ascending order.
///
/// Each root is found by the rational "middle way" iteration from its nearer pole, so that no
/// difference poles_i − ζ cancels. Poles far from a run of neighbouring gaps enter through one Taylor
/// expansion for the whole run; poles near it are summed one by one.
///
/// Source    [Li 1993, LAPACK working note 89] for the iteration; docs/design/secular.md for the sums
///
/// Requires  poles strictly ascending and finite; weights > 0; equal sizes
///
/// Returns   max(0, poles − 1) roots
///
/// Errors    Cancelled
///
/// Accuracy  |f(ζ)| <= 64 u Σ |weights_i / (poles_i − ζ)| (test: Secular.ResidualIsAtRoundingLevel)
///
/// Cost      about N²/40 multiply-adds and 200 N divisions at ordinary spacing; O(N) memory;
///           `threads` as in `parallel_for`
[[nodiscard]] std::vector<SecularRoot> secular_roots(std::span<const double> poles,
                                                     std::span<const double> weights, unsigned threads = 1,
                                                     const Progress& progress = {});

/// Finds these roots by bisection over plain sums in extended precision: slow, for tests.
[[nodiscard]] std::vector<SecularRoot> secular_roots_reference(std::span<const double> poles,
                                                               std::span<const double> weights);

}  // namespace normscope
