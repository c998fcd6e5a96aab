#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/proof/minimum_norm.hpp>

#include "active_set.hpp"

namespace normscope::proof {

/// The location of two sets of rows: their mean, and the extent of each column.
struct HullFrame {
  std::vector<double> center{};
  std::vector<double> extents{};  ///< largest |x − center| of a column

  HullFrame(MatrixView<const double> a, MatrixView<const double> b);

  [[nodiscard]] double scale() const { return largest_size(extents); }
};

/// Two sets of rows relative to their mean, the second negated, so that the hulls' difference is the sum of
/// the groups.
class CenteredHulls {
 public:
  using Exact = ActiveSet<DoubleDouble>::Vector;

  CenteredHulls(MatrixView<const double> a, MatrixView<const double> b, const HullFrame& frame,
                unsigned threads);

  [[nodiscard]] Eigen::Index dimension() const { return static_cast<Eigen::Index>(center_.size()); }
  [[nodiscard]] std::size_t rows() const { return a_.rows() + b_.rows(); }
  [[nodiscard]] Eigen::Index group(std::size_t row) const { return row < a_.rows() ? 0 : 1; }
  [[nodiscard]] std::size_t first_of(Eigen::Index group) const { return group == 0 ? 0 : a_.rows(); }
  [[nodiscard]] std::size_t end_of(Eigen::Index group) const { return group == 0 ? a_.rows() : rows(); }
  /// Each entry is rounded once.
  [[nodiscard]] std::span<const double> row(std::size_t row) const {
    return {values_.data() + row * center_.size(), center_.size()};
  }
  [[nodiscard]] Exact exact(std::size_t row) const;
  [[nodiscard]] double length(std::size_t row) const { return lengths_[row]; }
  [[nodiscard]] double longest() const { return longest_; }
  /// directionᵀ row for the rows in [first, last), with an error of at most `score_error`.
  void score(std::span<const double> direction, std::size_t first, std::size_t last,
             std::vector<double>& scores) const;
  [[nodiscard]] double score(std::span<const double> direction, std::size_t row) const;
  /// For a direction of length 1.
  [[nodiscard]] double score_error(std::size_t row) const;

 private:
  MatrixView<const double> a_;
  MatrixView<const double> b_;
  unsigned threads_;
  std::vector<double> center_;
  std::vector<double> values_;
  std::vector<double> lengths_;
  double longest_ = 0.0;
};

/// The nearest points of two hulls: their difference, and the active rows.
struct NearestHulls {
  CenteredHulls::Exact difference{};
  std::vector<PointWeight>
      shares{};  ///< rows numbered through both sets; weights > 0 that sum to 1 in each set
  /// Relative amount by which the length of the difference may exceed the distance, to the accuracy of the
  /// arithmetic.
  double gap = 0.0;
  bool is_zero = false;  ///< the difference is zero up to rounding
};

/// The nearest points of two hulls by Wolfe's active-set method, starting from the rows `start` if there are
/// any. Pricing all rows is rare: the most violated ones form a pool that is priced alone until none of it is
/// violated. The weights are refined with residuals in twice the precision.
///
/// Errors    Cancelled
///
/// Cost      O(rows dimension) per pricing of all rows; O(k (k + dimension)) per iteration with k active rows
[[nodiscard]] NearestHulls nearest_hulls(const CenteredHulls& hulls, const std::vector<PointWeight>& start,
                                         const Progress& progress);

/// Continues from that result, entirely in twice the precision.
///
/// Cost      about 100 times as much per iteration
[[nodiscard]] NearestHulls nearest_hulls_closely(const CenteredHulls& hulls,
                                                 const std::vector<PointWeight>& start,
                                                 const Progress& progress);

}  // namespace normscope::proof
