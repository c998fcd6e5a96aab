#include <normscope/proof/minimum_norm.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "active_set.hpp"

namespace normscope::proof {
namespace {

using Eigen::Index;
using Set = ActiveSet<double>;

/// Iterations without a shorter x after which rounding is assumed to cause a cycle.
constexpr std::size_t most_stalled = 10;

/// The active points of x, with a unit as long as the longest of them.
class WorkingSet {
 public:
  explicit WorkingSet(Index dimension) : dimension_(dimension), set_(dimension, 1, 1.0) {}

  [[nodiscard]] bool holds(std::uint64_t id) const { return set_.holds(id); }
  [[nodiscard]] Eigen::VectorXd point() const { return set_.point(); }

  /// Returns false if `point` lies in the affine hull of the others up to rounding.
  bool add(std::uint64_t id, const Eigen::VectorXd& point) {
    const double length = point.norm();
    // As long as the points; if it were much smaller, the sum of the weights would be lost to rounding.
    if (!(length <= 2.0 * unit_) && !lengthen(length)) return false;
    if (!set_.add(id, 0, point, set_.size() == 0 ? 1.0 : 0.0)) return false;
    points_.push_back(point);
    return true;
  }

  bool settle() {
    const std::vector<std::size_t> before = set_.rows();
    const bool sound = set_.settle();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < before.size() && kept < set_.rows().size(); ++i) {
      if (before[i] != set_.rows()[kept]) continue;
      std::swap(points_[kept++], points_[i]);
    }
    points_.resize(kept);
    return sound;
  }

  [[nodiscard]] std::vector<PointWeight> shares() const {
    std::vector<PointWeight> result;
    for (Index j = 0; j < set_.size(); ++j) {
      const double weight = set_.weights()[j];
      if (weight > 0.0) result.push_back({set_.rows()[static_cast<std::size_t>(j)], weight});
    }
    return result;
  }

 private:
  bool lengthen(double length) {
    if (!std::isfinite(length)) return false;
    unit_ = length;
    Set larger(dimension_, 1, unit_);
    for (Index j = 0; j < set_.size(); ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (!larger.add(set_.rows()[at], 0, points_[at], set_.weights()[j])) return false;
    }
    set_ = std::move(larger);
    return true;
  }

  Index dimension_;
  Set set_;
  double unit_ = 0.0;
  std::vector<Eigen::VectorXd> points_{};
};

using Rows = std::vector<std::size_t>;
using Vector = std::array<double, 3>;

Vector operator-(const Vector& a, const Vector& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vector cross(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double length(const Vector& a) { return std::sqrt(dot(a, a)); }
Vector unit(const Vector& a) {
  const double size = length(a);
  return {a[0] / size, a[1] / size, a[2] / size};
}

/// The points divided by their extent, so that tolerances are absolute.
std::vector<Vector> scaled(MatrixView<const double> points) {
  Vector mean{};
  for (std::size_t i = 0; i < points.rows(); ++i) {
    for (std::size_t c = 0; c < points.width(); ++c) {
      const double value = points.row(i)[c];
      if (!std::isfinite(value)) {
        throw Error(ErrorCode::Argument,
                    fmt::format("hull faces: row {} has {}, expected finite numbers", i, value));
      }
      mean[c] += value / static_cast<double>(points.rows());
    }
  }
  std::vector<Vector> result(points.rows(), Vector{});
  double extent = 0.0;
  for (std::size_t i = 0; i < points.rows(); ++i) {
    for (std::size_t c = 0; c < points.width(); ++c) {
      result[i][c] = points.row(i)[c] - mean[c];
      extent = std::max(extent, std::abs(result[i][c]));
    }
  }
  if (extent > 0.0) {
    for (Vector& point : result) {
      for (double& value : point) value /= extent;
    }
  }
  return result;
}

using Flat = std::array<double, 2>;

/// Signed distance of `c` to the left of the line from a to b, which differ.
double left_of(const Flat& a, const Flat& b, const Flat& c) {
  const Flat edge{b[0] - a[0], b[1] - a[1]};
  const double size = std::hypot(edge[0], edge[1]);
  return (edge[0] * (c[1] - a[1]) - edge[1] * (c[0] - a[0])) / size;
}

/// The convex polygon of `rows`, counterclockwise, by Andrew's monotone chain.
Rows polygon(const std::vector<Flat>& points, Rows rows, double tolerance) {
  std::sort(rows.begin(), rows.end(),
            [&](std::size_t a, std::size_t b) { return std::tie(points[a], a) < std::tie(points[b], b); });
  const auto same = [&](std::size_t a, std::size_t b) {
    return std::hypot(points[a][0] - points[b][0], points[a][1] - points[b][1]) <= tolerance;
  };
  rows.erase(std::unique(rows.begin(), rows.end(), same), rows.end());
  if (rows.size() < 3) return rows;
  const auto chain = [&](auto begin, auto end) {
    Rows result;
    for (auto it = begin; it != end; ++it) {
      while (result.size() >= 2 &&
             left_of(points[result[result.size() - 2]], points[result.back()], points[*it]) <= tolerance) {
        result.pop_back();
      }
      result.push_back(*it);
    }
    result.pop_back();
    return result;
  };
  Rows around = chain(rows.begin(), rows.end());
  const Rows back = chain(rows.rbegin(), rows.rend());
  around.insert(around.end(), back.begin(), back.end());
  return around;
}

/// The convex polygon of `rows`, which lie in a plane in space.
Rows polygon(const std::vector<Vector>& points, Rows rows, const Vector& normal, double tolerance) {
  const auto flat = std::min_element(normal.begin(), normal.end(),
                                     [](double a, double b) { return std::abs(a) < std::abs(b); });
  Vector axis{};
  axis[static_cast<std::size_t>(flat - normal.begin())] = 1.0;
  const Vector along = unit(cross(normal, axis));
  const Vector across = cross(normal, along);
  std::vector<Flat> places;
  places.reserve(points.size());
  for (const Vector& point : points) places.push_back({dot(point, along), dot(point, across)});
  return polygon(places, std::move(rows), tolerance);
}

/// The two end points of collinear points, or the single point if all are equal.
Rows segment(const std::vector<Vector>& points, double tolerance) {
  std::size_t far = 0;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (length(points[i] - points[0]) > length(points[far] - points[0])) far = i;
  }
  std::size_t other = far;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (length(points[i] - points[far]) > length(points[other] - points[far])) other = i;
  }
  return length(points[far] - points[other]) <= tolerance ? Rows{0} : Rows{other, far};
}

/// The rows in the plane through three of them, if all others lie on one side of it.
std::optional<Rows> supporting(const std::vector<Vector>& points, std::size_t on, const Vector& normal,
                               double tolerance) {
  Rows members;
  double least = 0.0;
  double most = 0.0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double height = dot(points[i] - points[on], normal);
    least = std::min(least, height);
    most = std::max(most, height);
    if (least < -tolerance && most > tolerance) return std::nullopt;
    if (std::abs(height) <= tolerance) members.push_back(i);
  }
  return members;
}

std::vector<Rows> faces_in_space(const std::vector<Vector>& points, double tolerance) {
  std::vector<Rows> faces;
  std::set<Rows> known;
  bool spans_a_plane = false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      for (std::size_t k = j + 1; k < points.size(); ++k) {
        const Vector across = cross(points[j] - points[i], points[k] - points[i]);
        // Three nearly collinear points define a plane poorly; every face has three better ones.
        if (length(across) <= std::sqrt(tolerance)) continue;
        spans_a_plane = true;
        const std::optional<Rows> members = supporting(points, i, unit(across), tolerance);
        if (!members || !known.insert(*members).second) continue;
        faces.push_back(polygon(points, *members, unit(across), tolerance));
        if (members->size() == points.size()) return faces;
      }
    }
  }
  if (!spans_a_plane) faces.push_back(segment(points, tolerance));
  return faces;
}

}  // namespace

MinimumNorm minimum_norm_point(const Hull& hull, double tolerance, std::size_t iterations,
                               const Progress& progress) {
  NORMSCOPE_ASSERT(hull.dimension >= 1);
  const Index dimension = static_cast<Index>(hull.dimension);
  Eigen::VectorXd x = Eigen::VectorXd::Zero(dimension);
  Eigen::VectorXd point(dimension);
  const auto ask = [&] { return hull.least({x.data(), hull.dimension}, {point.data(), hull.dimension}); };
  MinimumNorm result;
  const std::uint64_t first = ask();
  double largest = point.norm();
  double shortest = largest;
  WorkingSet working_set(dimension);
  bool sound = working_set.add(first, point) && working_set.settle();
  x = point;
  for (std::size_t stalled = 0; sound && result.iterations < iterations; ++result.iterations) {
    const double square = x.squaredNorm();
    const std::uint64_t id = ask();
    largest = std::max(largest, point.norm());
    result.gap = square - x.dot(point);
    progress("nearing, digits", std::min(digits(result.gap / square), digits(tolerance)), digits(tolerance));
    const bool at_origin = std::isfinite(largest) &&
                           std::sqrt(square) <= 16.0 * std::numeric_limits<double>::epsilon() * largest;
    if (result.gap <= tolerance * square || at_origin) {
      result.converged = true;
      break;
    }
    if (working_set.holds(id) || !working_set.add(id, point)) break;
    sound = working_set.settle();
    if (!sound) break;
    x = working_set.point();
    const double length = x.norm();
    stalled = length < shortest ? 0 : stalled + 1;
    shortest = std::min(shortest, length);
    if (stalled > most_stalled) break;
  }
  progress("nearing, digits", digits(tolerance), digits(tolerance));
  result.point.assign(x.data(), x.data() + dimension);
  result.shares = working_set.shares();
  return result;
}

std::vector<std::vector<std::size_t>> hull_faces(MatrixView<const double> points, double tolerance) {
  if (points.width() != 2 && points.width() != 3) {
    throw Error(ErrorCode::Shape,
                fmt::format("hull faces: points of width {}, expected 2 or 3", points.width()));
  }
  if (points.rows() == 0) return {};
  const std::vector<Vector> place = scaled(points);
  if (points.width() == 3) return faces_in_space(place, tolerance);
  std::vector<Flat> flat;
  flat.reserve(place.size());
  for (const Vector& point : place) flat.push_back({point[0], point[1]});
  Rows all(points.rows());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return {polygon(flat, std::move(all), tolerance)};
}

}  // namespace normscope::proof
