#include "equal_distance.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/eigen/decompositions.hpp>
#include <normscope/core/eigen/row_major.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/proof/trust_region.hpp>

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

VectorXd as_vector(const std::vector<double>& values) {
  return Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size()));
}

/// Whether M w + m = 0 has a solution of any length, up to rounding.
bool has_zero(const MatrixXd& matrix, const VectorXd& offset) {
  const VectorXd w = least_squares(matrix, -offset);
  return (matrix * w + offset).norm() <= 1e-10 * offset.norm();
}

/// Factor of each key coordinate in a score; empty if all are 1.
std::vector<double> factors_of(const HeadMaps& maps) {
  if (maps.rotation == nullptr || maps.rotation->score_factor == 1.0) return {};
  std::vector<double> result(maps.key.rows(), 1.0);
  std::fill_n(result.begin(), maps.rotation->dims, maps.rotation->score_factor);
  return result;
}

}  // namespace

AttentionSides::AttentionSides(const NormSpec& norm, const HeadMaps& maps, bool projects)
    : query(norm, maps.query, maps.query_bias, maps.query_error, maps.query_norm, projects),
      key(norm, maps.key, maps.key_bias, maps.key_error, maps.key_norm, projects, factors_of(maps)),
      scale(maps.scale) {}

EqualDistance::EqualDistance(const AttentionSides& sides) : sides_(sides) {
  const Reduced& query = sides.query.reduced();
  const Reduced& key = sides.key.reduced();
  const AffineImage& image = sides.query.image();
  matrix_ = 2.0 * sides.scale * key.triangle * query.triangle.transpose();
  offset_ = 2.0 * sides.scale * key.triangle * image.constant;
  // Products here have the size of a head; their rounding is relative to the sizes of their factors.
  const double keys = 2.0 * std::abs(sides.scale) * key.triangle.norm();
  const double queries = query.triangle.norm() * (1.0 + query.tilt) + image.constant_size;
  const double lost = image.constant_lost + 2.0 * rounding(key.triangle.cols()) * queries;
  slack_ = keys * (query.residual + lost) + keys * queries * (key.tilt + query.tilt) +
           2.0 * std::abs(sides.scale) * key.residual * (queries + query.residual + lost);
  slack_ *= 1.0 + 1e-6;
}

Spread EqualDistance::most_uniform(std::vector<UnavoidableContext>& proof) const {
  const double part = sides_.query.fills();
  const proof::ExtremeLength all = proof::least_length(RowMajor(matrix_), as_span(offset_));
  Spread result{.lower = std::max(0.0, all.lower - slack_) * sides_.key.fills() * (1.0 - rounding(1)),
                .multiplier = all.multiplier};
  if (result.lower > 0.0) {
    proof.push_back({1.0, opposite_keys(as_vector(all.dual))});
  }
  if (part == 0.0) {
    result.upper = proof::largest_length(RowMajor(matrix_), as_span(offset_)).upper + slack_;
    return result;
  }
  const proof::ExtremeLength known =
      part == 1.0 ? all : proof::least_length(RowMajor(part * matrix_), as_span(offset_));
  attain(known.point, result);
  result.upper = spread_of(as_vector(result.query)) + slack_;
  return result;
}

Spread EqualDistance::sharpest() const {
  const double part = sides_.query.fills();
  const proof::ExtremeLength all = proof::largest_length(RowMajor(matrix_), as_span(offset_));
  Spread result{.upper = all.upper + slack_, .multiplier = all.multiplier};
  if (part == 0.0) return result;
  const proof::ExtremeLength known =
      part == 1.0 ? all : proof::largest_length(RowMajor(part * matrix_), as_span(offset_));
  attain(known.point, result);
  result.lower =
      std::max(0.0, spread_of(as_vector(result.query)) - slack_) * sides_.key.fills() * (1.0 - rounding(1));
  return result;
}

KeyPair EqualDistance::keys_of(const VectorXd& query) const {
  return opposite_keys((sides_.scale < 0.0 ? -1.0 : 1.0) * (sides_.key.reduced().triangle * query));
}

KeyPair EqualDistance::opposite_keys(const VectorXd& pull) const {
  const double length = pull.norm();
  KeyPair pair;
  if (!(length > 0.0)) return pair;
  const double part = sides_.key.fills() == 0.0 ? 1.0 : sides_.key.fills();
  for (const double sign : {1.0, -1.0}) {
    const VectorXd v = sides_.key.point(sign / length * pull, part);
    (sign > 0.0 ? pair.high_point : pair.low_point).assign(v.begin(), v.end());
    (sign > 0.0 ? pair.high_row : pair.low_row) = sides_.key.row(v);
  }
  return pair;
}

bool EqualDistance::uniform_without_scaling() const {
  if (!sides_.query.has_own_norm() && !sides_.key.has_own_norm()) return has_zero(matrix_, offset_);
  const AffineImage query = sides_.query.without_scaling();
  const MatrixXd keys = triangle_of(sides_.key.without_scaling().map.transpose());
  return has_zero(keys * triangle_of(query.map.transpose()).transpose(), keys * query.constant);
}

/// The point of the ball, the input row that yields it, and its query.
void EqualDistance::attain(const std::vector<double>& point, Spread& result) const {
  const VectorXd u = sides_.query.point(as_vector(point), sides_.query.fills());
  const VectorXd query = sides_.query.image().map * u + sides_.query.image().constant;
  result.point.assign(u.begin(), u.end());
  result.query.assign(query.begin(), query.end());
  result.row = sides_.query.row(u);
}

double EqualDistance::spread_of(const VectorXd& query) const {
  return 2.0 * std::abs(sides_.scale) * (sides_.key.reduced().triangle * query).norm();
}

}  // namespace normscope::heads
