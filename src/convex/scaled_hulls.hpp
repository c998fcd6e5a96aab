#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/numeric/binary_scale.hpp>

#include "active_set.hpp"

namespace normscope::convex {

/// The location of two sets of rows: their mean, and the extent of each column.
struct HullFrame {
  std::vector<double> center{};
  std::vector<double> extents{};  ///< largest |x − center| of a column; infinite beyond the largest double

  HullFrame(MatrixView<const double> a, MatrixView<const double> b);

  [[nodiscard]] double scale() const { return largest_size(extents); }
  /// Ratio of the largest extent to the smallest nonzero one.
  [[nodiscard]] double spread() const;
};

/// Two sets of rows relative to their mean, with columns divided by powers of two and the second set negated,
/// so that the hulls' difference is the sum of the groups.
class ScaledHulls {
 public:
  using Exact = ActiveSet<DoubleDouble>::Vector;
  enum class Columns {
    alike,  ///< all divided by the same power of two: distances are those of the data
    apart,  ///< each divided by its own power of two: separability is preserved, distances are not
  };

  ScaledHulls(MatrixView<const double> a, MatrixView<const double> b, const HullFrame& frame, Columns columns,
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
  /// Converts a direction to the unscaled data, up to a positive factor.
  [[nodiscard]] std::vector<DoubleDouble> given(const Exact& direction) const;

 private:
  MatrixView<const double> a_;
  MatrixView<const double> b_;
  unsigned threads_;
  std::vector<BinaryScale> scales_{};
  std::vector<double> center_{};  ///< divided like the rows
  std::vector<double> values_{};
  std::vector<double> lengths_{};
  double longest_ = 0.0;
};

}  // namespace normscope::convex
