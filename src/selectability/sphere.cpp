#include "lead_oracle.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::selectability {
namespace {

/// A point no further from the sphere than this represents the nearest point on it.
constexpr double near_the_sphere = 0x1p-30;
/// Work limit per token, in products of a row and a point.
constexpr double most_work = 4e9;
constexpr std::size_t random_directions = 16;
/// Largest dimension in which the axes are tried as directions.
constexpr std::size_t few_dimensions = 16;

double to_unit_length(std::vector<double>& vector) {
  const double length = euclidean_norm(vector);
  for (double& value : vector) value = length > 0.0 ? value / length : 0.0;
  return length;
}

/// Moves from a point at which a token leads towards the sphere.
class Climb {
 public:
  Climb(const LeadOracle& oracle, std::size_t token, std::span<const double> inside)
      : field_(oracle), token_(token), inside_(inside.begin(), inside.end()) {}

  /// A point outside the ball, or on the sphere, such that the token leads, up to rounding, on the way to it.
  [[nodiscard]] std::optional<std::vector<double>> outside(std::vector<double> direction) {
    point_ = inside_;
    faces_.clear();
    blocked_.assign(field_.logits->tokens, false);
    for (std::size_t step = 0; step <= field_.logits->dimension(); ++step) {
      if (!turn_along_faces(direction)) return std::nullopt;
      const Hit hit = shoot(direction);
      const double to_sphere = distance_along(direction);
      if (to_sphere < hit.distance) {
        // Goes beyond the sphere, so that the path crosses it with a positive lead, but not beyond the next
        // face.
        const double far = std::min(2.0 * to_sphere, 0.5 * (to_sphere + hit.distance));
        move(direction, far);
        return point_;
      }
      move(direction, hit.distance);
      if (!add_face(hit.token)) return std::nullopt;
      direction = point_;
    }
    return std::nullopt;
  }

  /// The point where the segment from inside to a point outside crosses the sphere.
  [[nodiscard]] std::vector<double> crossing(const std::vector<double>& outside) const {
    std::vector<double> way(outside);
    for (std::size_t i = 0; i < way.size(); ++i) way[i] -= inside_[i];
    const double a = plain_dot(way, way);
    const double b = plain_dot(way, inside_);
    const double c = plain_dot(inside_, inside_) - 1.0;
    const double t = a > 0.0 ? (-b + std::sqrt(std::max(0.0, b * b - a * c))) / a : 0.0;
    for (std::size_t i = 0; i < way.size(); ++i) way[i] = inside_[i] + t * way[i];
    return way;
  }

  [[nodiscard]] double work() const { return work_; }

 private:
  struct Hit {
    std::size_t token = 0;
    double distance = infinity;
  };

  /// Projects the direction onto the faces met so far, and returns the rest, pointing outward.
  bool turn_along_faces(std::vector<double>& direction) {
    if (field_.logits->centers) center(direction);
    const double before = to_unit_length(direction);
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::vector<double>& face : faces_) {
        const double along = plain_dot(face, direction);
        for (std::size_t i = 0; i < direction.size(); ++i) direction[i] -= along * face[i];
      }
    }
    if (!(before > 0.0) || !(to_unit_length(direction) > 1e-9)) return false;
    if (plain_dot(direction, point_) < 0.0 && !faces_.empty()) {
      for (double& value : direction) value = -value;
    }
    return true;
  }

  /// The distance along the direction over which the token leads, and the constraint that ends it.
  Hit shoot(const std::vector<double>& direction) {
    const Logits& logits = *field_.logits;
    Hit hit;
    work_ += 2.0 * static_cast<double>(logits.tokens * logits.width);
    const std::span<const double> own = logits.view().row(token_);
    const double here = plain_dot(own, point_) + logits.offsets[token_];
    const double along = plain_dot(own, direction);
    for (std::size_t other = 0; other < logits.tokens; ++other) {
      if (other == token_ || blocked_[other]) continue;
      const std::span<const double> row = logits.view().row(other);
      const double slope = along - plain_dot(row, direction);
      if (!(slope < 0.0)) continue;
      const double lead = std::max(0.0, here - plain_dot(row, point_) - logits.offsets[other]);
      if (lead / -slope < hit.distance) hit = {other, lead / -slope};
    }
    return hit;
  }

  [[nodiscard]] double distance_along(const std::vector<double>& direction) const {
    const double b = plain_dot(point_, direction);
    const double c = plain_dot(point_, point_) - 1.0;
    return c >= 0.0 ? 0.0 : -b + std::sqrt(b * b - c);
  }

  void move(const std::vector<double>& direction, double by) {
    for (std::size_t i = 0; i < point_.size(); ++i) point_[i] += by * direction[i];
  }

  /// Returns false if the face is dependent on earlier ones: the point is then a corner up to rounding.
  bool add_face(std::size_t other) {
    std::vector<double> face(field_.logits->width);
    static_cast<void>(field_.difference(token_, other, face));
    blocked_[other] = true;
    if (!(to_unit_length(face) > 0.0)) return false;
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::vector<double>& known : faces_) {
        const double along = plain_dot(known, face);
        for (std::size_t i = 0; i < face.size(); ++i) face[i] -= along * known[i];
      }
    }
    if (!(to_unit_length(face) > 1e-9)) return false;
    faces_.push_back(std::move(face));
    return true;
  }

  const LeadOracle& field_;
  std::size_t token_;
  std::vector<double> inside_;
  std::vector<double> point_{};
  std::vector<std::vector<double>> faces_{};  ///< orthonormal
  std::vector<bool> blocked_{};               ///< constraints whose faces contain the point
  double work_ = 0.0;
};

/// Directions to leave the ball along: radially outward, the token's own row, the axes in small dimensions,
/// and random ones.
std::vector<std::vector<double>> directions(const Logits& logits, std::size_t token,
                                            std::span<const double> inside) {
  std::vector<std::vector<double>> result{{inside.begin(), inside.end()}, own_direction(logits, token)};
  if (logits.width <= few_dimensions) {
    for (std::size_t i = 0; i < logits.width; ++i) {
      for (const double sign : {1.0, -1.0}) {
        result.emplace_back(logits.width)[i] = sign;
      }
    }
  }
  Random random(token);
  for (std::size_t i = 0; i < random_directions; ++i) {
    for (double& value : result.emplace_back(logits.width)) value = random.normal();
  }
  return result;
}

}  // namespace

std::vector<double> on_sphere(const Logits& logits, std::span<const double> point) {
  std::vector<double> result(point.begin(), point.end());
  if (logits.centers) center(result);
  to_unit_length(result);
  for (double& value : result) value *= 1.0 - 0x1p-49;
  return result;
}

double distance_to_sphere(const Logits& logits, std::span<const double> point) {
  std::vector<double> inner(point.begin(), point.end());
  if (logits.centers) center(inner);
  const double length = euclidean_norm(inner);
  const double away = std::abs(1.0 - length) + 16.0 * unit_roundoff;
  // A component outside the norm's image changes logits only by the rounding of the rows.
  return away <= near_the_sphere ? away / length : infinity;
}

double lead_on_sphere(const LeadOracle& oracle, std::size_t token, std::span<const double> point,
                      unsigned threads) {
  const double distance = distance_to_sphere(*oracle.logits, point);
  if (distance == infinity) return -infinity;
  std::vector<EvaluationPoint> evaluation(1);
  evaluation[0].token = token;
  evaluation[0].point.assign(point.begin(), point.end());
  evaluate_leads(oracle, evaluation, threads);
  return evaluation[0].lower - 2.0 * oracle.logits->scale * distance;
}

std::optional<std::vector<double>> lift(const LeadOracle& oracle, std::size_t token,
                                        std::span<const double> inside, unsigned threads) {
  Climb climb(oracle, token, inside);
  for (std::vector<double>& direction : directions(*oracle.logits, token, inside)) {
    const std::optional<std::vector<double>> outside = climb.outside(std::move(direction));
    if (outside) {
      std::vector<double> point = on_sphere(*oracle.logits, climb.crossing(*outside));
      if (lead_on_sphere(oracle, token, point, threads) > 0.0) return point;
    }
    if (climb.work() > most_work) break;
  }
  return std::nullopt;
}

}  // namespace normscope::selectability
