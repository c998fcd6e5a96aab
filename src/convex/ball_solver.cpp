#include <unordered_map>

#include <normscope/convex/ball.hpp>
#include <normscope/core/assert.hpp>

#include "ball_working_set.hpp"

namespace normscope::convex {

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
      const VectorXd heights = rows_.leftCols(n).transpose() * point + offsets_.head(n);
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

}  // namespace normscope::convex
