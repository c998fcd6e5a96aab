#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include <normscope/analysis/norm_reading.hpp>
#include <normscope/analysis/subsets.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/view.hpp>

namespace normscope::analysis {

/// f(S) = |u + Σ_S d_k|² and v·(u + Σ_S d_k), from inner products.
struct Form {
  std::size_t count = 0;
  std::vector<double> gram{};      ///< d_j·d_k
  std::vector<double> with_row{};  ///< u·d_k
  std::vector<double> reads{};     ///< v·d_k
  std::vector<double> lengths{};   ///< |d_k|
  double row_square = 0.0, row_length = 0.0, row_reads = 0.0, direction_length = 0.0;
  double squared_radius = 1.0, eps = 0.0, divisor = 0.0;
  double unit = 0.0;  ///< an inner product errs by at most this part of the product of the lengths
  std::vector<double> row_entries{}, direction{}, changes{};  ///< u, v and the d_k

  [[nodiscard]] std::span<const double> row(std::size_t k) const { return {gram.data() + k * count, count}; }
  [[nodiscard]] double divisor_of(double square) const {
    return std::sqrt(std::max(0.0, square) / squared_radius + eps);
  }
  /// The price of freezing of a set.
  [[nodiscard]] double price(double square, double read) const {
    const double s = divisor_of(square);
    return s > 0.0 ? read * (1.0 / s - 1.0 / divisor) : read == 0.0 ? 0.0 : std::copysign(infinity, read);
  }
  /// |u| and the `removed` largest |d_k|: no |u + Σ_S d_k| is longer.
  [[nodiscard]] double longest(std::size_t removed) const {
    std::vector<double> sorted = lengths;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    return std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(removed), row_length);
  }
};

/// From a reading and what removing each component adds to its row.
[[nodiscard]] Form form_of(const NormReading& reading, MatrixView<const double> changes);

/// The least and the most of a number over sets, and where.
struct Extremes {
  AttainedSet least{{}, infinity}, most{{}, -infinity};

  void add(double value, const std::vector<std::size_t>& set) {
    if (value < least.value) least = {set, value};
    if (value > most.value) most = {set, value};
  }
  void add(const Extremes& other) {
    if (other.least.value < least.value) least = other.least;
    if (other.most.value > most.value) most = other.most;
  }
};

/// Bounds of f over sets, with rounding.
struct SquareBounds {
  double least = 0.0, most = infinity;
};

/// Searches among all sets of at most `most` components; it keeps a reference to the form.
class SetSearch {
 public:
  SetSearch(const Form& form, std::size_t most, double most_work, unsigned threads);
  ~SetSearch();
  SetSearch(const SetSearch&) = delete;
  SetSearch& operator=(const SetSearch&) = delete;

  /// Makes extremes of f that are attained those of all sets of at most `removed` components; false, with
  /// nothing changed, if that takes more than `most_work`.
  [[nodiscard]] bool find_squares(std::size_t removed, Extremes& known) const {
    return find(removed, nullptr, known);
  }
  /// Likewise of the price, for f that is within those bounds.
  [[nodiscard]] bool find_prices(std::size_t removed, const SquareBounds& within, Extremes& known) const {
    return find(removed, &within, known);
  }

 private:
  struct Tables;
  class Branch;
  bool find(std::size_t removed, const SquareBounds* within, Extremes& known) const;

  std::unique_ptr<Tables> tables_;
  double most_work_;
  unsigned threads_;
};

/// Diagonals D for which G − D (below), or D − G (above), is positive semidefinite for the exact G, with a
/// margin that a decomposition in float64 can see.
struct Diagonals {
  std::vector<std::vector<double>> below{}, above{};
};
[[nodiscard]] Diagonals diagonals_of(const Form& form);

/// A proved bound of f over sets of at most `removed` components, a lower one for sign 1, an upper one for
/// −1, by a tangent of f relaxed with that diagonal.
struct RelaxedBound {
  double value = 0.0;
  Relaxation relaxation{};
};
[[nodiscard]] RelaxedBound relaxed_bound(const Form& form, const std::vector<double>& diagonal, double sign,
                                         std::size_t removed);

}  // namespace normscope::analysis
