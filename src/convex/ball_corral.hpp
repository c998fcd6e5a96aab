#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <Eigen/Dense>

namespace normscope::convex {

/// The rows that carry the weights of a ball problem: columns P, offsets b, and the triangle R with
/// RᵀR = PᵀP + unit in every entry, so that sums of weights are kept by one solve.
class BallCorral {
 public:
  using Index = Eigen::Index;
  using MatrixXd = Eigen::MatrixXd;
  using VectorXd = Eigen::VectorXd;

  explicit BallCorral(Index width) : columns_(width, 8), triangle_(MatrixXd::Zero(8, 8)), offsets_(8) {}

  [[nodiscard]] Index size() const { return static_cast<Index>(members_.size()); }
  [[nodiscard]] const std::vector<Index>& members() const { return members_; }
  [[nodiscard]] const VectorXd& weights() const { return weights_; }
  [[nodiscard]] VectorXd sum() const { return columns() * weights_; }
  [[nodiscard]] double offset() const { return offsets_.head(size()).dot(weights_); }
  [[nodiscard]] double scale() const { return std::sqrt(unit_); }

  /// Adds a row with weight 0, or 1 for the first. False when it lies in the affine hull of the others to
  /// rounding.
  bool add(Index member, const Eigen::Ref<const VectorXd>& row, double offset) {
    const Index k = size();
    if (k > columns_.rows()) return false;
    if (k == columns_.cols()) grow();
    columns_.col(k) = row;
    offsets_[k] = offset;
    if (row.squaredNorm() > 4.0 * unit_ || k == 0) {
      unit_ = std::max({unit_, row.squaredNorm(), std::numeric_limits<double>::min()});
      for (Index i = 0; i < k; ++i) {
        if (!extend(i)) return false;
      }
    }
    if (!extend(k)) return false;
    members_.push_back(member);
    weights_.conservativeResize(k + 1);
    weights_[k] = k == 0 ? 1.0 : 0.0;
    return true;
  }

  /// Puts a row that lies in the affine hull of the others in the place of one of them, which leaves
  /// Σ weight · row where it is. False when rounding leaves no such place.
  bool exchange(Index member, const Eigen::Ref<const VectorXd>& row, double offset) {
    VectorXd coordinates = columns().transpose() * row;
    coordinates.array() += unit_;
    solve(coordinates);
    Index leaving = -1;
    double step = 0.0;
    for (Index i = 0; i < size(); ++i) {
      // A coordinate of rounding would leave the new row as dependent as before.
      if (coordinates[i] <= 1e-9) continue;
      const double reach = weights_[i] / coordinates[i];
      if (leaving < 0 || reach < step) {
        leaving = i;
        step = reach;
      }
    }
    if (leaving < 0 || !std::isfinite(step)) return false;
    weights_ -= step * coordinates;
    drop(leaving);
    if (!add(member, row, offset)) return false;
    weights_[size() - 1] = step;
    weights_ = weights_.cwiseMax(0.0);
    weights_ /= weights_.sum();
    return true;
  }

  /// Moves the weights to the least |Σ λ row| + Σ λ offset over the affine hull, dropping rows on the way
  /// whose weight would turn negative; `point` is then where all rows of the corral are equally high.
  /// False when rounding leaves no such weights.
  bool settle(VectorXd& point) {
    while (true) {
      const Flat flat = flat_part();
      if (!flat.sound) return false;
      VectorXd move = flat.target ? VectorXd(*flat.target - weights_) : flat.slope;
      // A weight of zero stays: where rows tie, it is what turns the point.
      if (flat.target && flat.target->minCoeff() >= -zero) {
        weights_ = flat.target->cwiseMax(0.0);
        point = flat.point;
        return true;
      }
      double step = flat.target ? 1.0 : std::numeric_limits<double>::infinity();
      Index leaving = -1;
      for (Index i = 0; i < size(); ++i) {
        if (flat.target ? (*flat.target)[i] >= -zero : move[i] >= -zero * move.norm()) continue;
        const double reach = weights_[i] / -move[i];
        if (leaving < 0 || reach < step) {
          leaving = i;
          step = reach;
        }
      }
      if (leaving < 0 || size() == 1 || !std::isfinite(step)) return false;
      weights_ += step * move;
      drop(leaving);
      weights_ = weights_.cwiseMax(0.0);
      weights_ /= weights_.sum();
    }
  }

 private:
  /// Along the affine hull the least value has weights p + ρ r: p of the point nearest to the origin, r what
  /// the offsets turn it by, ρ from |u| = 1.
  struct Flat {
    bool sound = false;
    VectorXd slope{};
    std::optional<VectorXd> target{};  ///< none where the value falls along `slope` without end
    VectorXd point{};
  };

  [[nodiscard]] Eigen::Block<const MatrixXd, Eigen::Dynamic, Eigen::Dynamic, true> columns() const {
    return columns_.leftCols(size());
  }

  void solve(Eigen::Ref<MatrixXd> right) const {
    const auto upper = triangle_.topLeftCorner(size(), size()).triangularView<Eigen::Upper>();
    upper.transpose().solveInPlace(right);
    upper.solveInPlace(right);
  }

  Flat flat_part() const {
    const Index k = size();
    MatrixXd solved(k, 2);
    solved.col(0).setOnes();
    solved.col(1) = offsets_.head(k);
    solve(solved);
    const VectorXd ones = solved.col(0);
    const double total = ones.sum();
    Flat flat;
    flat.sound = std::isfinite(total) && total > 0.0;
    if (!flat.sound) return flat;
    const auto balanced = [&](const VectorXd& v) -> VectorXd { return v - v.sum() / total * ones; };
    // The Gram matrix squares the condition; one step against the rows themselves takes that back.
    const auto refined = [&](const VectorXd& weights, const VectorXd& target) -> VectorXd {
      VectorXd left = target - columns().transpose() * (columns() * weights);
      solve(left);
      return weights + balanced(left);
    };
    VectorXd nearest = ones / total;
    nearest = refined(nearest, VectorXd::Zero(k));
    const bool level = offsets_.head(k).maxCoeff() == offsets_.head(k).minCoeff();
    flat.slope = level ? VectorXd::Zero(k) : refined(-balanced(solved.col(1)), -offsets_.head(k));
    const VectorXd middle = columns() * nearest;
    const VectorXd turn = columns() * flat.slope;
    const double rest = 1.0 - turn.squaredNorm();
    const double noise = 64.0 * std::numeric_limits<double>::epsilon() * scale();
    const bool at_origin = k > columns_.rows() || middle.norm() <= noise * std::sqrt(static_cast<double>(k));
    if (at_origin && rest > 0.0) {
      flat.target = nearest;
      flat.point = turn;
    } else if (rest > 4.0 * std::numeric_limits<double>::epsilon()) {
      const double rho = middle.norm() / std::sqrt(rest);
      flat.target = nearest + rho * flat.slope;
      flat.point = middle / rho + turn;
    }
    return flat;
  }

  /// Column k of the triangle from column k of P.
  bool extend(Index k) {
    VectorXd column = columns_.leftCols(k).transpose() * columns_.col(k);
    column.array() += unit_;
    if (k > 0) {
      triangle_.topLeftCorner(k, k).triangularView<Eigen::Upper>().transpose().solveInPlace(column);
    }
    const double whole = columns_.col(k).squaredNorm() + unit_;
    const double left = whole - column.squaredNorm();
    // Below this, what is left is the rounding of the products as likely as a distance.
    if (!(left > 1e-13 * whole)) return false;
    triangle_.col(k).head(k) = column;
    triangle_(k, k) = std::sqrt(left);
    return true;
  }

  /// Takes row `index` out; rotations bring the triangle back to its shape.
  void drop(Index index) {
    const Index k = size();
    for (Index j = index; j + 1 < k; ++j) {
      columns_.col(j) = columns_.col(j + 1);
      offsets_[j] = offsets_[j + 1];
      weights_[j] = weights_[j + 1];
      triangle_.col(j).head(j + 2) = triangle_.col(j + 1).head(j + 2);
    }
    for (Index j = index; j + 1 < k; ++j) {
      Eigen::JacobiRotation<double> rotation;
      rotation.makeGivens(triangle_(j, j), triangle_(j + 1, j));
      triangle_.block(0, j, k, k - 1 - j).applyOnTheLeft(j, j + 1, rotation.adjoint());
      triangle_(j + 1, j) = 0.0;
    }
    members_.erase(members_.begin() + index);
    weights_.conservativeResize(k - 1);
  }

  void grow() {
    const Index more = 2 * columns_.cols();
    columns_.conservativeResize(Eigen::NoChange, more);
    offsets_.conservativeResize(more);
    MatrixXd triangle = MatrixXd::Zero(more, more);
    triangle.topLeftCorner(size(), size()) = triangle_.topLeftCorner(size(), size());
    triangle_ = std::move(triangle);
  }

  /// Weights this small are rounding.
  static constexpr double zero = 1e-14;

  double unit_ = 0.0;
  MatrixXd columns_;
  MatrixXd triangle_;
  VectorXd offsets_;
  VectorXd weights_{};
  std::vector<Index> members_{};
};

}  // namespace normscope::convex
