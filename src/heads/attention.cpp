#include <normscope/heads/attention.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>

#include "spreads.hpp"

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Singular values below this fraction of the largest are rounding noise.
constexpr double rank_tolerance = 1e-12;

/// `u` orthogonal to 1 where the norm projects, and 0 where its gain is 0: the part that the image depends
/// on.
void keep_in_image(const NormSpec& norm, bool projects, VectorXd& u) {
  const auto erase = [&] {
    for (Index j = 0; j < u.size(); ++j) {
      // With a projection, a coordinate with zero gain still takes part in the mean.
      if (norm.gain_at(static_cast<std::size_t>(j)) == 0.0 && !projects) u[j] = 0.0;
    }
  };
  erase();
  if (!projects) return;
  for (int pass = 0; pass < 2; ++pass) u.array() -= u.mean();
}

/// Whether a square upper triangular matrix has an inverse of less than this size.
bool has_small_inverse(const MatrixXd& triangle, double largest) {
  if (triangle.rows() != triangle.cols() || !(triangle.diagonal().cwiseAbs().minCoeff() > 0.0)) return false;
  const MatrixXd inverse =
      triangle.triangularView<Eigen::Upper>().solve(MatrixXd::Identity(triangle.rows(), triangle.cols()));
  return inverse.norm() < largest;
}

/// An upper bound of |u|.
double length_of(const VectorXd& u) { return u.norm() * (1.0 + rounding(u.size())); }

}  // namespace

AttentionSide::AttentionSide(const NormSpec& norm, MatrixView<const double> weight,
                             std::span<const double> bias, const MapError& error, const NormSpec* through,
                             bool projects, std::vector<double> factors)
    : norm_(&norm),
      through_(through),
      projects_(projects),
      factors_(std::move(factors)),
      input_(norm, weight, bias, error, projects && norm.centers()),
      own_(through == nullptr ? std::nullopt
                              : std::optional(OwnNorm(*through, input_, projects && through->centers()))),
      image_([&] {
        AffineImage image =
            through == nullptr ? input_ : AffineImage(*through, projects && through->centers());
        image.scale_rows(factors_);
        return image;
      }()),
      reduced_(image_) {
  const MatrixXd& matrix = reduced_.triangle;
  const double size = matrix.norm();
  if (has_small_inverse(matrix, 1.0 / (rank_tolerance * size))) return;
  const auto rows = static_cast<std::size_t>(matrix.rows());
  const auto columns = static_cast<std::size_t>(matrix.cols());
  const Svd svd =
      singular_value_decomposition({matrix.data(), rows, columns, 1, rows}, SingularVectors::left);
  const auto least = std::find_if(svd.values.begin(), svd.values.end(),
                                  [&](double value) { return value <= rank_tolerance * svd.values[0]; });
  seen_ = row_major(svd.left, matrix.rows(), static_cast<Index>(svd.values.size()))
              .leftCols(least - svd.values.begin());
}

AffineImage AttentionSide::without_scaling() const {
  AffineImage image =
      through_ == nullptr ? input_ : input_.through(*through_, projects_ && through_->centers());
  image.scale_rows(factors_);
  return image;
}

VectorXd AttentionSide::point(const VectorXd& w, double part) const {
  VectorXd u = reduced_.basis * (seen_ ? VectorXd(*seen_ * (seen_->transpose() * w)) : w);
  const NormSpec& norm = through_ == nullptr ? *norm_ : *through_;
  keep_in_image(norm, projects_ && norm.centers(), u);
  u *= part;
  const double longest = part * (1.0 - 2.0 * rounding(u.size()));
  if (length_of(u) > longest) u *= longest / length_of(u);
  return u;
}

double AttentionSide::rounding_of_point(const VectorXd& u, const VectorXd& w, double part) const {
  const MatrixXd& basis = reduced_.basis;
  return (basis.transpose() * u - part * w).norm() * (1.0 + rounding(w.size())) +
         2.0 * rounding(basis.rows() + w.size()) * (basis.norm() * u.norm() + w.norm());
}

std::vector<double> AttentionSide::row(const VectorXd& point) const {
  if (fills() == 0.0) return {};
  VectorXd u = own_ ? own_->preimage(point) : point;
  if (own_) keep_in_image(*norm_, projects_ && norm_->centers(), u);
  std::vector<double> result(norm_->width);
  const double radius = norm_->radius();
  // The rounding of the row itself must not take it out of the image. Beside a large bias that is more than
  // the rounding of u, so u is shortened by more each time.
  for (long double times = 1.0L;; times *= 2.0L) {
    long double square = 0.0L;
    for (std::size_t j = 0; j < norm_->width; ++j) {
      const double gain = norm_->gain_at(j);
      const double bias = norm_->bias_at(j);
      result[j] = radius * gain * u[static_cast<Index>(j)] + bias;
      const long double back = gain == 0.0 ? static_cast<long double>(u[static_cast<Index>(j)])
                                           : (static_cast<long double>(result[j]) - bias) /
                                                 (static_cast<long double>(radius) * gain);
      square += back * back;
    }
    if (!(square > 1.0L)) return result;
    u *= static_cast<double>((1.0L - 0x1p-52L) / (1.0L + times * (std::sqrt(square) - 1.0L)));
  }
}

namespace {

/// Range of the sizes of maps for which scores and their squares stay within a double's range.
constexpr double largest_map = 0x1p120;
constexpr double least_map = 0x1p-120;

bool finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

void check(const NormSpec& norm) {
  validate(norm);
  require_normalizing("heads", norm);
  if (norm.groups != 1) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("heads: the norm has {} groups, expected 1", norm.groups));
  }
}

void check_rotation(const HeadMaps& head) {
  if (head.rotation == nullptr) return;
  const Rotation& rotation = *head.rotation;
  const std::size_t count = rotation.frequencies.size();
  if (rotation.dims % 2 != 0 || rotation.dims > head.query.rows() ||
      (count != 0 && count != rotation.dims / 2)) {
    throw Error(
        ErrorCode::Shape,
        fmt::format("heads: a rotation of {} coordinates with {} frequencies, expected an even number "
                    "up to {} and a frequency for each pair or none",
                    rotation.dims, count, head.query.rows()));
  }
  if (!finite(rotation.frequencies) || !std::isfinite(rotation.score_factor)) {
    throw Error(ErrorCode::Argument, "heads: a frequency or score factor of the rotation is not finite");
  }
}

void check(const NormSpec& norm, const HeadMaps& head) {
  check(norm);
  const std::size_t dim = head.query.rows();
  const auto is_bias = [&](std::span<const double> bias) { return bias.empty() || bias.size() == dim; };
  if (dim == 0 || head.key.rows() != dim || head.query.width() != norm.width ||
      head.key.width() != norm.width || !is_bias(head.query_bias) || !is_bias(head.key_bias)) {
    throw Error(
        ErrorCode::Shape,
        fmt::format("heads: query {} x {} with {} biases, key {} x {} with {}, expected head_dim x {} "
                    "twice and a bias for each feature or none",
                    head.query.rows(), head.query.width(), head.query_bias.size(), head.key.rows(),
                    head.key.width(), head.key_bias.size(), norm.width));
  }
  for (const NormSpec* own : {head.query_norm, head.key_norm}) {
    if (own == nullptr) continue;
    check(*own);
    if (own->width != dim) {
      throw Error(ErrorCode::Shape, fmt::format("heads: a norm of {} on queries or keys of {}, expected {}",
                                                own->width, dim, dim));
    }
  }
  bool all = finite(head.query_bias) && finite(head.key_bias) && std::isfinite(head.scale);
  for (std::size_t row = 0; row < dim; ++row)
    all = all && finite(head.query.row(row)) && finite(head.key.row(row));
  for (const MapError* error : {&head.query_error, &head.key_error}) {
    if ((error->weight.width() != 0 &&
         (error->weight.rows() != dim || error->weight.width() != norm.width)) ||
        !is_bias(error->bias)) {
      throw Error(ErrorCode::Shape, "heads: the error bounds of a map do not have its shape");
    }
    all = all && finite(error->bias);
    for (std::size_t row = 0; row < error->weight.rows(); ++row) {
      all = all && finite(error->weight.row(row));
    }
  }
  if (!all) throw Error(ErrorCode::Argument, "heads: an entry of the head's maps is not finite");
  if (!(head.soft_cap >= 0.0) || !std::isfinite(head.soft_cap)) {
    throw Error(ErrorCode::Argument,
                fmt::format("heads: a soft cap of {}, expected a number >= 0", head.soft_cap));
  }
  check_rotation(head);
}

/// Squares of scores must neither overflow nor underflow, or the bounds would not hold.
void check_sizes(const AttentionSides& sides) {
  const auto out_of_range = [](double size) {
    return !(size <= largest_map) || (size != 0.0 && size < least_map);
  };
  bool all = !out_of_range(std::abs(sides.scale));
  for (const AttentionSide* side : {&sides.query, &sides.key}) {
    all = all && !out_of_range(side->image().map.cwiseAbs().maxCoeff()) &&
          !out_of_range(side->image().constant.cwiseAbs().maxCoeff());
  }
  if (!all) {
    throw Error(ErrorCode::Unsupported,
                "heads: maps so large or small that scores leave the range of float64, expected sizes from "
                "2^-120 to 2^120");
  }
}

/// For a head without rotary embedding.
void bound_at_zero_distance(const EqualDistance& extremes, Attention& result) {
  result.most_uniform = extremes.most_uniform(result.uniform_proof);
  result.sharpest = extremes.sharpest();
  const std::vector<double>& query = result.sharpest.query;
  if (query.empty()) return;
  result.sharpest_keys = extremes.keys_of(
      Eigen::Map<const Eigen::VectorXd>(query.data(), static_cast<Eigen::Index>(query.size())));
}

}  // namespace

Attention attention(const NormSpec& norm, const HeadMaps& maps, const AttentionEffort& effort) {
  check(norm, maps);
  const AttentionSides sides(norm, maps, true);
  check_sizes(sides);
  const EqualDistance extremes(sides);
  Attention result;
  const bool turning = turns(maps);
  if (turning) {
    bound_over_distances(sides, maps, effort, result);
    result.distances->uniform_at_zero = extremes.most_uniform(result.distances->uniform_at_zero_proof);
    result.distances->sharpest_at_zero = extremes.sharpest();
    result.uniform_without_scaling = uniform_without_scaling_over_distances(sides, maps);
  } else {
    bound_at_zero_distance(extremes, result);
    result.uniform_without_scaling = extremes.uniform_without_scaling();
  }
  result.queries_fill = sides.query.fills();
  result.keys_fill = sides.key.fills();
  result.queries_radius = sides.query.radius();
  result.keys_radius = sides.key.radius();
  const auto projects = [&](const NormSpec* own) { return own == nullptr ? norm.centers() : own->centers(); };
  std::optional<AttentionSides> whole;
  if (projects(maps.query_norm) || projects(maps.key_norm)) {
    whole.emplace(norm, maps, false);
    const EqualDistance without(*whole);
    auto& uniform =
        turning ? result.distances->uniform_at_zero_without_projection : result.uniform_without_projection;
    auto& sharpest =
        turning ? result.distances->sharpest_at_zero_without_projection : result.sharpest_without_projection;
    uniform = without.most_uniform(result.uniform_without_projection_proof);
    sharpest = without.sharpest();
    result.fills_without_projection = {whole->query.fills(), whole->key.fills(), whole->query.radius(),
                                       whole->key.radius()};
  }
  if (maps.soft_cap > 0.0) bend_scores(sides, whole ? &*whole : nullptr, maps, result);
  return result;
}

}  // namespace normscope::heads
