#include <normscope/selectability/attention.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <Eigen/Dense>

#include <normscope/convex/trust_region.hpp>
#include <normscope/core/error.hpp>
#include <normscope/numeric/rounding.hpp>

#include "head_maps.hpp"

namespace normscope::selectability {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void check(const NormSpec& norm) {
  validate(norm);
  if (norm.groups != 1) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("heads: the norm has {} groups, expected 1", norm.groups));
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
  const auto finite = [](std::span<const double> values) {
    return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  };
  bool all = finite(head.query_bias) && finite(head.key_bias) && std::isfinite(head.scale);
  for (std::size_t row = 0; row < dim; ++row)
    all = all && finite(head.query.row(row)) && finite(head.key.row(row));
  if (!all) throw Error(ErrorCode::Argument, "heads: an entry of the head's maps is not finite");
}

/// What a head's queries or keys are: in the image of a ball, which they fill but for norms of their own.
struct Side {
  AffineImage input;           ///< of the norm's ball by the head's map
  std::optional<OwnNorm> own;  ///< that the input goes through
  AffineImage image;           ///< in which what comes out lies

  Side(const NormSpec& norm, MatrixView<const double> weight, std::span<const double> bias,
       const NormSpec* through, bool projects)
      : input(norm, weight, bias, projects && norm.centers()),
        own(through == nullptr ? std::nullopt
                               : std::optional(OwnNorm(*through, input, projects && through->centers()))),
        image(through == nullptr ? input : AffineImage(*through, projects && through->centers())) {}

  [[nodiscard]] double fills() const { return own ? own->fills() : 1.0; }
};

/// Extremes of |M w + m|, M = 2 s K Qᵀ and m = 2 s K c, for queries Qᵀ w + c and keys of triangle K.
class Extremes {
 public:
  Extremes(const AffineImage& query, const AffineImage& key, double scale)
      : query_(query),
        key_(key),
        constant_(query.constant),
        matrix_(2.0 * scale * key_.triangle * query_.triangle.transpose()),
        offset_(2.0 * scale * key_.triangle * constant_) {
    // Products here are of a head's size and rounded relative to the sizes of their factors.
    const double keys = 2.0 * std::abs(scale) * key_.triangle.norm();
    const double queries = query_.triangle.norm() * (1.0 + query_.tilt) + query.constant_size;
    const double lost = query.constant_lost + 2.0 * rounding(key_.triangle.cols()) * queries;
    slack_ = keys * (query_.residual + lost) + keys * queries * (key_.tilt + query_.tilt) +
             2.0 * std::abs(scale) * key_.residual * (queries + query_.residual);
    slack_ *= 1.0 + 1e-6;
  }

  /// The least over |w| <= 1 from below, over |w| <= `part` from above.
  [[nodiscard]] Spread least(double part) const {
    const convex::ExtremeLength all = convex::least_length(view(matrix_), offset());
    Spread result{.lower = std::max(0.0, all.lower - slack_), .multiplier = all.multiplier};
    const convex::ExtremeLength known =
        part == 1.0 ? all : convex::least_length(view(part * matrix_), offset());
    result.upper = known.upper + slack_;
    attain(known, part, result);
    return result;
  }
  /// The largest over |w| <= 1 from above, over |w| <= `part` from below.
  [[nodiscard]] Spread largest(double part) const {
    const convex::ExtremeLength all = convex::largest_length(view(matrix_), offset());
    Spread result{.upper = all.upper + slack_, .multiplier = all.multiplier};
    const convex::ExtremeLength known =
        part == 1.0 ? all : convex::largest_length(view(part * matrix_), offset());
    result.lower = std::max(0.0, known.lower - slack_);
    attain(known, part, result);
    return result;
  }

  /// Whether M w + m = 0 has a solution, of any length, to rounding.
  [[nodiscard]] bool vanishes_somewhere() const {
    const VectorXd w = matrix_.completeOrthogonalDecomposition().solve(-offset_);
    return (matrix_ * w + offset_).norm() <= 1e-10 * offset_.norm();
  }

 private:
  [[nodiscard]] static MatrixView<const double> view(const RowMajor& matrix) {
    return {matrix.data(), static_cast<std::size_t>(matrix.rows()), static_cast<std::size_t>(matrix.cols())};
  }
  [[nodiscard]] std::span<const double> offset() const {
    return {offset_.data(), static_cast<std::size_t>(offset_.size())};
  }

  /// The query, and for now as its row the point of the ball that makes it.
  void attain(const convex::ExtremeLength& found, double part, Spread& result) const {
    const VectorXd w =
        part * Eigen::Map<const VectorXd>(found.point.data(), static_cast<Index>(found.point.size()));
    const VectorXd query = query_.triangle.transpose() * w + constant_;
    const VectorXd u = query_.basis * w;
    result.query.assign(query.begin(), query.end());
    result.row.assign(u.begin(), u.end());
  }

  Reduced query_;
  Reduced key_;
  VectorXd constant_;
  RowMajor matrix_;
  VectorXd offset_;
  double slack_ = 0.0;
};

/// A head with every norm's Π, or without.
class Head {
 public:
  Head(const NormSpec& norm, const HeadMaps& maps, bool projects)
      : norm_(norm),
        query_norm_(maps.query_norm),
        key_norm_(maps.key_norm),
        scale_(maps.scale),
        projects_(projects),
        query_(norm, maps.query, maps.query_bias, maps.query_norm, projects),
        key_(norm, maps.key, maps.key_bias, maps.key_norm, projects),
        extremes_(query_.image, key_.image, maps.scale) {}

  [[nodiscard]] double queries_fill() const { return query_.fills(); }
  [[nodiscard]] double keys_fill() const { return key_.fills(); }

  [[nodiscard]] Spread most_uniform() const {
    Spread result = extremes_.least(query_.fills());
    result.lower *= of_keys();
    if (query_.fills() == 0.0) result.upper = extremes_.largest(0.0).upper;
    return with_row(std::move(result));
  }
  [[nodiscard]] Spread sharpest() const {
    Spread result = extremes_.largest(query_.fills());
    result.lower *= query_.fills() == 0.0 ? 0.0 : of_keys();
    return with_row(std::move(result));
  }

  [[nodiscard]] bool uniform_without_scaling() const {
    if (!query_.own && !key_.own) return extremes_.vanishes_somewhere();
    const auto unscaled = [&](const Side& side, const NormSpec* own) {
      return own == nullptr ? side.input : side.input.through(*own, projects_ && own->centers());
    };
    return Extremes(unscaled(query_, query_norm_), unscaled(key_, key_norm_), scale_).vanishes_somewhere();
  }

 private:
  /// What a spread over all of the keys' ball is worth over the part of it they fill.
  [[nodiscard]] double of_keys() const { return key_.own ? key_.fills() * (1.0 - rounding(1)) : 1.0; }

  /// Turns the point of the query's ball into what the norm puts out there.
  [[nodiscard]] Spread with_row(Spread spread) const {
    if (query_.fills() == 0.0) {
      spread.query.clear();
      spread.row.clear();
      return spread;
    }
    if (query_.own) {
      const VectorXd u = query_.own->preimage(
          Eigen::Map<const VectorXd>(spread.row.data(), static_cast<Index>(spread.row.size())));
      spread.row.assign(u.begin(), u.end());
    }
    for (std::size_t j = 0; j < norm_.width; ++j) {
      spread.row[j] = norm_.radius() * norm_.gain_at(j) * spread.row[j] + norm_.bias_at(j);
    }
    return spread;
  }

  const NormSpec& norm_;
  const NormSpec* query_norm_;
  const NormSpec* key_norm_;
  double scale_;
  bool projects_;
  Side query_;
  Side key_;
  Extremes extremes_;
};

}  // namespace

Attention attention(const NormSpec& norm, const HeadMaps& maps) {
  check(norm, maps);
  const Head head(norm, maps, true);
  Attention result{.most_uniform = head.most_uniform(),
                   .sharpest = head.sharpest(),
                   .uniform_without_scaling = head.uniform_without_scaling(),
                   .queries_fill = head.queries_fill(),
                   .keys_fill = head.keys_fill()};
  const auto projects = [&](const NormSpec* own) { return own == nullptr ? norm.centers() : own->centers(); };
  if (projects(maps.query_norm) || projects(maps.key_norm)) {
    const Head whole(norm, maps, false);
    result.uniform_without_projection = whole.most_uniform();
    result.sharpest_without_projection = whole.sharpest();
  }
  return result;
}

}  // namespace normscope::selectability
