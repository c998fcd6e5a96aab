#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <Eigen/Core>

#include <normscope/core/exact.hpp>

namespace Eigen {

template <>
struct NumTraits<normscope::DoubleDouble> : GenericNumTraits<normscope::DoubleDouble> {
  enum {
    IsInteger = 0,
    IsSigned = 1,
    IsComplex = 0,
    RequireInitialization = 1,
    ReadCost = 2,
    AddCost = 20,
    MulCost = 20
  };
  static normscope::DoubleDouble epsilon() { return 0x1p-102; }
  static normscope::DoubleDouble dummy_precision() { return 0x1p-96; }
};

}  // namespace Eigen

namespace normscope::proof {

/// Whole decimal digits of −log10 of a value in (0, 1), 0 for any other: the unit of progress reports.
inline std::size_t digits(double value) {
  return value > 0.0 && value < 1.0 ? static_cast<std::size_t>(-std::log10(value)) : 0;
}

/// The active rows of a nearest point x = Σ c_j p_j, each in one of one or two groups whose weights sum to 1,
/// and the QR decomposition of their columns (p_j, u e_group). If u is of the size of the points, the columns
/// are independent exactly if the points are affinely independent within and across groups, and the nearest
/// point of the affine hulls takes one triangular solve. Scalar is double or DoubleDouble.
///
/// Source    [Wolfe 1976, Finding the nearest point in a polytope], extended to two hulls; [Daniel, Gragg,
///           Kaufman, Stewart 1976] for the updates of the QR decomposition
///
/// Cost      4 k dimension to add a row, 6 k (k + dimension) to remove one, for k rows
template <typename Scalar>
class ActiveSet {
 public:
  using Index = Eigen::Index;
  using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;
  using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

  /// Requires  groups 1 or 2; unit > 0
  ActiveSet(Index dimension, Index groups, double unit);

  [[nodiscard]] Index size() const { return static_cast<Index>(rows_.size()); }
  [[nodiscard]] const std::vector<std::size_t>& rows() const { return rows_; }
  [[nodiscard]] const std::vector<Index>& group_of() const { return group_of_; }
  [[nodiscard]] const Vector& weights() const { return weights_; }
  [[nodiscard]] bool holds(std::size_t row) const {
    return std::find(rows_.begin(), rows_.end(), row) != rows_.end();
  }

  /// Adds a point; returns false if it depends on the present ones up to rounding.
  bool add(std::size_t row, Index group, const Vector& point, const Scalar& weight);
  /// Moves the weights to the nearest point of the affine hulls, removing rows whose weight would become
  /// negative. Returns false if rounding leaves no such point.
  bool settle();
  /// Σ c_j p_j after `settle`; its rounding errors are relative to the points, not to x.
  [[nodiscard]] Vector point() const { return q_.block(0, 0, dimension_, size()) * image_; }

  /// One step of iterative refinement of the weights and x, from the residuals f of Pc − x, g_j of −p_jᵀx
  /// without the part common to a group, and h of 1 − Σc in each group.
  ///
  /// Source    [Björck 1967, Iterative refinement of linear least squares solutions]
  void correction(const Vector& f, const Vector& g, const Vector& h, Vector& of_weights,
                  Vector& of_point) const;

 private:
  void remove(Index position);
  /// Weights of the nearest point of the affine hulls.
  [[nodiscard]] Vector unconstrained();
  /// (S Sᵀ)⁻¹ right, where S is the rows of Q that belong to the groups.
  [[nodiscard]] Vector solve_groups(const Vector& right) const;

  Index dimension_;
  Index groups_;
  Scalar unit_;
  Matrix q_{};  ///< (dimension + groups, capacity)
  Matrix r_{};  ///< (capacity, capacity), upper
  std::vector<std::size_t> rows_{};
  std::vector<Index> group_of_{};
  Vector weights_{};
  Vector image_{};  ///< Qᵀ (x, u, u)
};

extern template class ActiveSet<double>;
extern template class ActiveSet<DoubleDouble>;

}  // namespace normscope::proof
