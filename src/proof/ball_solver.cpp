#include <normscope/proof/ball.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include <Eigen/Core>
#include <Eigen/Jacobi>

#include <normscope/core/eigen/matrix_vector.hpp>
#include <normscope/core/error.hpp>

namespace normscope::proof {
namespace {

/// The working set of a ball problem: columns P, offsets b, weights, and Q R = P̃, where P̃ is P with one
/// more entry `unit` in every column, as large as the longest column, so that one solve preserves the sum of
/// the weights. Nothing is squared, so the distance of the origin from the hull of the columns is accurate to
/// rounding.
class BallWorkingSet {
 public:
  using Index = Eigen::Index;
  using MatrixXd = Eigen::MatrixXd;
  using VectorXd = Eigen::VectorXd;

  explicit BallWorkingSet(Index width)
      : columns_(width, 8), basis_(width + 1, 8), triangle_(MatrixXd::Zero(8, 8)), offsets_(8) {}

  [[nodiscard]] Index size() const { return static_cast<Index>(members_.size()); }
  [[nodiscard]] const std::vector<Index>& members() const { return members_; }
  [[nodiscard]] const VectorXd& weights() const { return weights_; }
  [[nodiscard]] VectorXd sum() const { return times(columns(), weights_); }
  [[nodiscard]] double offset() const { return offsets_.head(size()).dot(weights_); }

  /// Adds a row with weight 0, or 1 if it is the first. Returns false if it lies in the affine hull of the
  /// others up to rounding.
  bool add(Index member, const Eigen::Ref<const VectorXd>& row, double offset) {
    const Index k = size();
    if (k > columns_.rows()) return false;
    if (k == columns_.cols()) grow();
    columns_.col(k) = row;
    offsets_[k] = offset;
    if (row.norm() > 2.0 * unit_ || k == 0) {
      unit_ = std::max({unit_, row.norm(), shortest});
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

  /// Replaces one of the rows by a row that lies in their affine hull, which leaves Σ weight · row unchanged.
  /// Returns false if rounding leaves no row to replace.
  bool exchange(Index member, const Eigen::Ref<const VectorXd>& row, double offset) {
    VectorXd coordinates = transposed_times(basis(), longer(row));
    solve(coordinates);
    Index leaving = -1;
    double step = 0.0;
    for (Index i = 0; i < size(); ++i) {
      // A coordinate at the level of rounding would leave the new row dependent.
      if (!(coordinates[i] > 1e-9)) continue;
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

  /// Moves the weights to the minimum of |Σ λ row| + Σ λ offset over the affine hull, removing rows whose
  /// weight would become negative; at `point` all rows of the working set then have equal height. Returns
  /// false if rounding leaves no such weights.
  bool settle(VectorXd& point) {
    while (true) {
      const Flat flat = flat_part();
      if (!flat.sound) return false;
      VectorXd move = flat.target ? VectorXd(*flat.target - weights_) : flat.slope;
      // A row of weight zero is kept: among ties it determines the point.
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
      if (leaving < 0 || !std::isfinite(step)) return false;
      weights_ += step * move;
      drop(leaving);
      weights_ = weights_.cwiseMax(0.0);
      weights_ /= weights_.sum();
    }
  }

 private:
  /// The solution over the affine hull: weights r with sum 0 that account for the offsets and, if it exists,
  /// the minimum over the hull with its point.
  struct Flat {
    bool sound = false;
    VectorXd slope{};
    std::optional<VectorXd> target{};
    VectorXd point{};
  };

  using Columns = Eigen::Block<const MatrixXd, Eigen::Dynamic, Eigen::Dynamic, true>;

  [[nodiscard]] Columns columns() const { return columns_.leftCols(size()); }
  [[nodiscard]] Columns basis() const { return basis_.leftCols(size()); }
  /// R⁻¹ right.
  void solve(VectorXd& right) const {
    triangle_.topLeftCorner(size(), size()).triangularView<Eigen::Upper>().solveInPlace(right);
  }
  /// R⁻ᵀ right.
  void solve_transposed(VectorXd& right) const {
    triangle_.topLeftCorner(size(), size()).triangularView<Eigen::Upper>().transpose().solveInPlace(right);
  }
  [[nodiscard]] VectorXd longer(const Eigen::Ref<const VectorXd>& row) const {
    VectorXd result(row.size() + 1);
    result << row, unit_;
    return result;
  }

  /// With e the last unit vector, c = Qᵀe and w = e − Qc, the point of the hull nearest to the origin is a
  /// multiple of −w, with weights proportional to R⁻¹c. w is orthogonal to every column of P̃, so all rows
  /// have equal height along it, however short it is.
  [[nodiscard]] Flat flat_part() const {
    const Index k = size();
    const Index width = columns_.rows();
    Flat flat;
    const VectorXd last = basis().row(width).transpose();
    VectorXd across = VectorXd::Unit(width + 1, width) - times(basis(), last);
    across -= times(basis(), transposed_times(basis(), across));
    VectorXd nearest = last;
    solve(nearest);
    const double total = nearest.sum();
    flat.sound = nearest.allFinite() && total > 0.0;
    if (!flat.sound) return flat;
    nearest /= total;
    VectorXd by = VectorXd::Zero(k);
    if (offsets_.head(k).maxCoeff() != offsets_.head(k).minCoeff()) {
      // A common offset has no effect; subtracting one first keeps the differences exact.
      by = offsets_.head(k).array() - offsets_[0];
      solve_transposed(by);
      by -= last.dot(by) / last.squaredNorm() * last;
      by -= last.dot(by) / last.squaredNorm() * last;
    }
    flat.slope = -by;
    solve(flat.slope);
    const VectorXd turn = -times(basis(), by).head(width);
    const double rest = 1.0 - turn.squaredNorm();
    const double away = across.head(width).norm();
    // Smaller than `zero`: a hull farther from the origin than this has a direction, a nearer one a row of
    // weight zero.
    const double noise = 4.0 * std::numeric_limits<double>::epsilon() * std::sqrt(static_cast<double>(k));
    if (k > width || away <= noise) {
      if (rest > 0.0) {
        flat.target = nearest;
        flat.point = turn;
      }
    } else if (rest > 4.0 * std::numeric_limits<double>::epsilon()) {
      // The length of the nearest point, and the step along the slope at which |u| = 1.
      const double length = unit_ * away / last.squaredNorm();
      flat.target = nearest + length / std::sqrt(rest) * flat.slope;
      flat.point = turn - std::sqrt(rest) / away * across.head(width);
    }
    return flat;
  }

  /// Computes column k of Q and R from column k of P.
  bool extend(Index k) {
    VectorXd column = longer(columns_.col(k));
    const double whole = column.norm();
    const auto before = basis_.leftCols(k);
    VectorXd along = VectorXd::Zero(k);
    // The second projection removes the rounding of the first.
    for (int pass = 0; pass < 2; ++pass) {
      const VectorXd part = transposed_times(before, column);
      column -= times(before, part);
      along += part;
    }
    const double left = column.norm();
    // Below this, the remainder may be rounding of the products rather than a distance.
    if (!(left > 1e-13 * whole)) return false;
    triangle_.col(k).head(k) = along;
    triangle_(k, k) = left;
    basis_.col(k) = column / left;
    return true;
  }

  /// Removes row `index`; rotations restore the triangle.
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
      basis_.leftCols(k).applyOnTheRight(j, j + 1, rotation);
      triangle_(j + 1, j) = 0.0;
    }
    members_.erase(members_.begin() + index);
    weights_.conservativeResize(k - 1);
  }

  void grow() {
    const Index more = 2 * columns_.cols();
    columns_.conservativeResize(Eigen::NoChange, more);
    basis_.conservativeResize(Eigen::NoChange, more);
    offsets_.conservativeResize(more);
    MatrixXd triangle = MatrixXd::Zero(more, more);
    triangle.topLeftCorner(size(), size()) = triangle_.topLeftCorner(size(), size());
    triangle_ = std::move(triangle);
  }

  /// Lengths above this have squares that do not underflow.
  static constexpr double shortest = 0x1p-400;
  /// Weights below this are rounding, also for rows that nearly cancel.
  static constexpr double zero = 1e-13;

  double unit_ = 0.0;
  MatrixXd columns_;
  MatrixXd basis_;
  MatrixXd triangle_;
  VectorXd offsets_;
  VectorXd weights_{};
  std::vector<Index> members_{};
};

}  // namespace

/// Consecutive ties after which the solver stops.
constexpr std::size_t most_stalls = 200;

class BallSolver::Work {
 public:
  using Index = BallWorkingSet::Index;
  using VectorXd = BallWorkingSet::VectorXd;

  explicit Work(std::size_t width)
      : rows_(static_cast<Index>(width), 16), offsets_(16), working_set_(static_cast<Index>(width)) {}

  [[nodiscard]] bool holds(std::uint64_t id) const { return places_.find(id) != places_.end(); }
  [[nodiscard]] std::size_t size() const { return ids_.size(); }

  void add(std::uint64_t id, std::span<const double> row, double offset) {
    NORMSCOPE_ASSERT(static_cast<Index>(row.size()) == rows_.rows() && !holds(id));
    const Index n = static_cast<Index>(size());
    if (n == rows_.cols()) {
      rows_.conservativeResize(Eigen::NoChange, 2 * n);
      offsets_.conservativeResize(2 * n);
    }
    rows_.col(n) = Eigen::Map<const VectorXd>(row.data(), rows_.rows());
    offsets_[n] = offset;
    scale_ = std::max(scale_, rows_.col(n).norm() + std::abs(offset));
    places_.emplace(id, n);
    ids_.push_back(id);
  }

  State solve(double tolerance, double enough) {
    NORMSCOPE_ASSERT(size() >= 1);
    const Index n = static_cast<Index>(size());
    State state;
    // Starts with the lowest row at the centre of the ball, or with the row that keeps the first step short.
    if (working_set_.size() == 0) start();
    double before = std::numeric_limits<double>::infinity();
    std::size_t stalls = 0;
    const std::size_t most = 50 * (size() + static_cast<std::size_t>(rows_.rows()) + 20);
    State best;
    best.lower = -std::numeric_limits<double>::infinity();
    best.upper = before;
    for (; state.iterations < most; ++state.iterations) {
      VectorXd point;
      if (!working_set_.settle(point)) {
        if (state.iterations > 0) break;
        // The rows of the last call have become dependent beside longer ones.
        working_set_ = BallWorkingSet(rows_.rows());
        start();
        [[maybe_unused]] const bool settled = working_set_.settle(point);
        NORMSCOPE_ASSERT(settled);
      }
      const double length = point.norm();
      if (length > 1.0) point /= length;
      state.upper = working_set_.sum().norm() + working_set_.offset();
      const VectorXd heights = transposed_times(rows_.leftCols(n), point) + offsets_.head(n);
      Index lowest = 0;
      state.lower = heights.minCoeff(&lowest);
      if (state.upper < best.upper) {
        best.upper = state.upper;
        best.shares = shares();
      }
      if (state.lower > best.lower) {
        best.lower = state.lower;
        best.point.assign(point.data(), point.data() + point.size());
      }
      if (state.upper - state.lower <= tolerance * scale_ || state.upper <= enough) break;
      if (state.upper < before) {
        stalls = 0;
      } else {
        // A tie: adding another low row may resolve it. If none does, only rounding remains.
        if (++stalls > most_stalls) break;
        lowest = some_low_row(heights, 0.5 * (state.lower + heights[working_set_.members()[0]]), stalls);
      }
      if (is_member(lowest)) break;
      before = std::min(before, state.upper);
      if (!working_set_.add(lowest, rows_.col(lowest), offsets_[lowest]) &&
          !working_set_.exchange(lowest, rows_.col(lowest), offsets_[lowest])) {
        break;
      }
    }
    best.iterations = state.iterations;
    return best;
  }

 private:
  void start() {
    const Index n = static_cast<Index>(size());
    Index least = 0;
    const VectorXd values = rows_.leftCols(n).colwise().norm().transpose() + offsets_.head(n);
    values.minCoeff(&least);
    working_set_.add(least, rows_.col(least), offsets_[least]);
  }

  /// One of the rows no higher than `height`, a different one at each call.
  [[nodiscard]] static Index some_low_row(const VectorXd& heights, double height, std::size_t time) {
    std::vector<Index> low;
    for (Index i = 0; i < heights.size(); ++i) {
      if (heights[i] <= height) low.push_back(i);
    }
    if (low.empty()) heights.minCoeff(&low.emplace_back());
    return low[7 * time % low.size()];
  }

  [[nodiscard]] bool is_member(Index place) const {
    const std::vector<Index>& members = working_set_.members();
    return std::find(members.begin(), members.end(), place) != members.end();
  }

  [[nodiscard]] std::vector<PointWeight> shares() const {
    std::vector<PointWeight> result;
    for (Index i = 0; i < working_set_.size(); ++i) {
      const Index place = working_set_.members()[static_cast<std::size_t>(i)];
      if (working_set_.weights()[i] > 0.0) {
        result.push_back({ids_[static_cast<std::size_t>(place)], working_set_.weights()[i]});
      }
    }
    return result;
  }

  Eigen::MatrixXd rows_;  ///< one per column
  VectorXd offsets_;
  double scale_ = 0.0;
  std::vector<std::uint64_t> ids_{};
  std::unordered_map<std::uint64_t, Index> places_{};
  BallWorkingSet working_set_;
};

BallSolver::BallSolver(std::size_t width) : work_(std::make_unique<Work>(width)) {}
BallSolver::BallSolver(BallSolver&&) noexcept = default;
BallSolver& BallSolver::operator=(BallSolver&&) noexcept = default;
BallSolver::~BallSolver() = default;

void BallSolver::add(std::uint64_t id, std::span<const double> row, double offset) {
  work_->add(id, row, offset);
}
bool BallSolver::holds(std::uint64_t id) const { return work_->holds(id); }
std::size_t BallSolver::rows() const { return work_->size(); }
BallSolver::State BallSolver::solve(double tolerance, double enough) {
  return work_->solve(tolerance, enough);
}

}  // namespace normscope::proof
