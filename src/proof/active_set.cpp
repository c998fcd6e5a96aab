#include "active_set.hpp"

#include <cmath>
#include <limits>
#include <type_traits>

namespace normscope::proof {
namespace {

constexpr Eigen::Index first_capacity = 16;

/// A point counts as dependent if its component outside the span of the others is below this fraction of its
/// length.
template <typename Scalar>
constexpr double dependent = std::is_same_v<Scalar, double> ? 0x1p-44 : 0x1p-94;

}  // namespace

template <typename Scalar>
ActiveSet<Scalar>::ActiveSet(Index dimension, Index groups, double unit)
    : dimension_(dimension),
      groups_(groups),
      unit_(unit),
      q_(dimension + groups, first_capacity),
      r_(first_capacity, first_capacity) {}

template <typename Scalar>
bool ActiveSet<Scalar>::add(std::size_t row, Index group, const Vector& point, const Scalar& weight) {
  using std::sqrt;
  const Index k = size();
  if (k == q_.cols()) {
    q_.conservativeResize(Eigen::NoChange, 2 * k);
    r_.conservativeResize(2 * k, 2 * k);
  }
  Vector rest = Vector::Zero(dimension_ + groups_);
  rest.head(dimension_) = point;
  rest[dimension_ + group] = unit_;
  const Scalar length = sqrt(rest.squaredNorm());
  // Orthogonalized twice, for orthogonality to rounding.
  const Vector along = q_.leftCols(k).transpose() * rest;
  rest.noalias() -= q_.leftCols(k) * along;
  const Vector again = q_.leftCols(k).transpose() * rest;
  rest.noalias() -= q_.leftCols(k) * again;
  const Scalar left = sqrt(rest.squaredNorm());
  if (!(left > length * Scalar(dependent<Scalar>))) return false;
  r_.col(k).head(k) = along + again;
  r_(k, k) = left;
  q_.col(k) = rest / left;
  rows_.push_back(row);
  group_of_.push_back(group);
  weights_.conservativeResize(k + 1);
  weights_[k] = weight;
  return true;
}

/// Moves the later columns to the left and eliminates the entries below the diagonal by rotations.
template <typename Scalar>
void ActiveSet<Scalar>::remove(Index position) {
  using std::sqrt;
  const Index k = size();
  for (Index j = position; j + 1 < k; ++j) {
    r_.col(j).head(j + 2) = r_.col(j + 1).head(j + 2);
    weights_[j] = weights_[j + 1];
  }
  for (Index j = position; j + 1 < k; ++j) {
    const Scalar length = sqrt(r_(j, j) * r_(j, j) + r_(j + 1, j) * r_(j + 1, j));
    const Scalar cosine = r_(j, j) / length;
    const Scalar sine = r_(j + 1, j) / length;
    for (Index i = j; i + 1 < k; ++i) {
      const Scalar above = r_(j, i);
      const Scalar below = r_(j + 1, i);
      r_(j, i) = cosine * above + sine * below;
      r_(j + 1, i) = cosine * below - sine * above;
    }
    for (Index i = 0; i < q_.rows(); ++i) {
      const Scalar left = q_(i, j);
      const Scalar right = q_(i, j + 1);
      q_(i, j) = cosine * left + sine * right;
      q_(i, j + 1) = cosine * right - sine * left;
    }
  }
  rows_.erase(rows_.begin() + position);
  group_of_.erase(group_of_.begin() + position);
  weights_.conservativeResize(k - 1);
}

template <typename Scalar>
typename ActiveSet<Scalar>::Vector ActiveSet<Scalar>::solve_groups(const Vector& right) const {
  const auto sums = q_.block(dimension_, 0, groups_, size());
  const Scalar a = sums.row(0).squaredNorm();
  if (groups_ == 1) return right / a;
  const Scalar b = sums.row(0).dot(sums.row(1));
  const Scalar c = sums.row(1).squaredNorm();
  const Scalar determinant = a * c - b * b;
  Vector result(groups_);
  result[0] = (c * right[0] - b * right[1]) / determinant;
  result[1] = (a * right[1] - b * right[0]) / determinant;
  return result;
}

template <typename Scalar>
typename ActiveSet<Scalar>::Vector ActiveSet<Scalar>::unconstrained() {
  // The shortest combination (Σ c_j p_j, u Σ c_j of each group) whose sums are 1.
  const Index k = size();
  image_ = q_.block(dimension_, 0, groups_, k).transpose() * solve_groups(Vector::Constant(groups_, unit_));
  return r_.topLeftCorner(k, k).template triangularView<Eigen::Upper>().solve(image_);
}

template <typename Scalar>
bool ActiveSet<Scalar>::settle() {
  while (true) {
    const Vector target = unconstrained();
    Index leaving = -1;
    Scalar step = 1.0;
    for (Index i = 0; i < size(); ++i) {
      if (!std::isfinite(to_double(target[i]))) return false;
      if (target[i] > Scalar(0.0)) continue;
      const Scalar reach = weights_[i] / (weights_[i] - target[i]);
      if (leaving < 0 || reach < step) {
        step = reach;
        leaving = i;
      }
    }
    if (leaving < 0) {
      weights_ = target;
      return true;
    }
    if (size() <= groups_ || !std::isfinite(to_double(step))) return false;
    weights_ += (target - weights_) * step;
    weights_[leaving] = 0.0;
    for (Index i = size() - 1; i >= 0; --i) {
      if (!(weights_[i] > Scalar(0.0))) remove(i);
    }
    if (size() < groups_) return false;
  }
}

template <typename Scalar>
void ActiveSet<Scalar>::correction(const Vector& f, const Vector& g, const Vector& h, Vector& of_weights,
                                   Vector& of_point) const {
  const Index k = size();
  const auto triangle = r_.topLeftCorner(k, k).template triangularView<Eigen::Upper>();
  const auto q = q_.leftCols(k);
  const auto sums = q_.block(dimension_, 0, groups_, k);
  const Vector along = triangle.transpose().solve(g);
  Vector shift = Vector::Zero(dimension_ + groups_);
  shift.head(dimension_) = f;
  shift.tail(groups_) = -h * unit_;
  const Vector first = along - q.transpose() * shift;
  const Vector multipliers = solve_groups(sums * first - h * unit_);
  shift.tail(groups_) += multipliers;
  const Vector inside = along - q.transpose() * shift;
  of_weights = triangle.solve(inside);
  of_point = (q * inside + shift).head(dimension_);
}

template class ActiveSet<double>;
template class ActiveSet<DoubleDouble>;

}  // namespace normscope::proof
