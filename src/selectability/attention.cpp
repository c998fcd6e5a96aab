#include <normscope/selectability/attention.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>
#include <Eigen/Dense>

#include <normscope/convex/trust_region.hpp>
#include <normscope/core/error.hpp>

namespace normscope::selectability {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double unit = std::numeric_limits<double>::epsilon() / 2.0;

/// Rounding of a sum of `terms` products relative to the sum of their sizes.
double rounding(Index terms) { return 2.0 * static_cast<double>(terms + 4) * unit; }

void check(const NormSpec& norm, const HeadMaps& head) {
  validate(norm);
  if (norm.groups != 1) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("heads: the norm has {} groups, expected 1", norm.groups));
  }
  const std::size_t dim = head.query.rows();
  if (dim == 0 || head.key.rows() != dim || head.query.width() != norm.width ||
      head.key.width() != norm.width || (!head.query_bias.empty() && head.query_bias.size() != dim)) {
    throw Error(
        ErrorCode::Shape,
        fmt::format("heads: query {} x {}, key {} x {}, {} query biases, expected head_dim x {} twice "
                    "and a bias for each feature or none",
                    head.query.rows(), head.query.width(), head.key.rows(), head.key.width(),
                    head.query_bias.size(), norm.width));
  }
  const auto finite = [](std::span<const double> values) {
    return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  };
  bool all = finite(head.query_bias) && std::isfinite(head.scale);
  for (std::size_t row = 0; row < dim; ++row)
    all = all && finite(head.query.row(row)) && finite(head.key.row(row));
  if (!all) throw Error(ErrorCode::Argument, "heads: an entry of the head's maps is not finite");
}

/// {L u : |u| <= 1} as {Rᵀ w : |w| <= 1} of no more dimensions than L has rows: Lᵀ = Q R.
struct Reduced {
  MatrixXd map;           ///< L, head_dim × width
  MatrixXd basis;         ///< Q, orthonormal but for `tilt`
  MatrixXd triangle;      ///< R
  double residual = 0.0;  ///< at least |Lᵀ − Q R|_F, with the rounding that went into L
  double tilt = 0.0;      ///< at least |QᵀQ − I|_F

  explicit Reduced(MatrixXd linear, double lost) : map(std::move(linear)) {
    const Index least = std::min(map.rows(), map.cols());
    const Eigen::HouseholderQR<MatrixXd> qr(map.transpose());
    basis = qr.householderQ() * MatrixXd::Identity(map.cols(), least);
    triangle = qr.matrixQR().topRows(least).triangularView<Eigen::Upper>();
    residual =
        lost + (map.transpose() - basis * triangle).norm() + rounding(least) * basis.norm() * triangle.norm();
    tilt = (basis.transpose() * basis - MatrixXd::Identity(least, least)).norm() +
           rounding(map.cols()) * basis.squaredNorm();
  }
};

/// r W G Π, or without Π.
Reduced reduced(const NormSpec& norm, MatrixView<const double> weight, bool centers) {
  MatrixXd map(static_cast<Index>(weight.rows()), static_cast<Index>(weight.width()));
  for (Index i = 0; i < map.rows(); ++i) {
    const std::span<const double> row = weight.row(static_cast<std::size_t>(i));
    for (Index j = 0; j < map.cols(); ++j) {
      const auto at = static_cast<std::size_t>(j);
      map(i, j) = norm.radius() * row[at] * norm.gain_at(at);
    }
  }
  // Two products an entry, and the mean of a row twice taken out.
  const double lost = (centers ? rounding(map.cols()) : rounding(1)) * map.norm();
  if (centers) {
    for (int pass = 0; pass < 2; ++pass) map.colwise() -= map.rowwise().mean().eval();
  }
  return Reduced(std::move(map), lost);
}

/// W_Q β + b_Q.
VectorXd constant_query(const NormSpec& norm, const HeadMaps& head) {
  VectorXd query(static_cast<Index>(head.query.rows()));
  for (std::size_t i = 0; i < head.query.rows(); ++i) {
    double sum = head.query_bias.empty() ? 0.0 : head.query_bias[i];
    for (std::size_t j = 0; j < norm.width; ++j) sum += head.query.row(i)[j] * norm.bias_at(j);
    query[static_cast<Index>(i)] = sum;
  }
  return query;
}

class Extremes {
 public:
  Extremes(const NormSpec& norm, const HeadMaps& head, bool centers)
      : norm_(norm),
        query_(reduced(norm, head.query, centers)),
        key_(reduced(norm, head.key, centers)),
        constant_(constant_query(norm, head)),
        matrix_(2.0 * head.scale * key_.triangle * query_.triangle.transpose()),
        offset_(2.0 * head.scale * key_.triangle * constant_) {
    // Products here are of a head's size and rounded relative to the sizes of their factors.
    const double keys = 2.0 * std::abs(head.scale) * key_.triangle.norm();
    double constant_size = 0.0;
    for (std::size_t i = 0; i < head.query.rows(); ++i) {
      double size = head.query_bias.empty() ? 0.0 : std::abs(head.query_bias[i]);
      for (std::size_t j = 0; j < norm.width; ++j) size += std::abs(head.query.row(i)[j] * norm.bias_at(j));
      constant_size += size * size;
    }
    const double queries = query_.triangle.norm() * (1.0 + query_.tilt) + std::sqrt(constant_size);
    const double lost = rounding(static_cast<Index>(norm.width)) * std::sqrt(constant_size) +
                        2.0 * rounding(key_.triangle.cols()) * queries;
    slack_ = keys * (query_.residual + lost) + keys * queries * (key_.tilt + query_.tilt) +
             2.0 * std::abs(head.scale) * key_.residual * (queries + query_.residual);
    slack_ *= 1.0 + 1e-6;
  }

  [[nodiscard]] Spread least() const { return spread(convex::least_length(view(), offset())); }
  [[nodiscard]] Spread largest() const { return spread(convex::largest_length(view(), offset())); }

  /// Whether M w + m = 0 has a solution, of any length, to rounding.
  [[nodiscard]] bool vanishes_somewhere() const {
    const VectorXd w = matrix_.completeOrthogonalDecomposition().solve(-offset_);
    return (matrix_ * w + offset_).norm() <= 1e-10 * offset_.norm();
  }

 private:
  [[nodiscard]] MatrixView<const double> view() const {
    return {matrix_.data(), static_cast<std::size_t>(matrix_.rows()),
            static_cast<std::size_t>(matrix_.cols())};
  }
  [[nodiscard]] std::span<const double> offset() const {
    return {offset_.data(), static_cast<std::size_t>(offset_.size())};
  }

  [[nodiscard]] Spread spread(const convex::ExtremeLength& found) const {
    Spread result{.lower = std::max(0.0, found.lower - slack_), .upper = found.upper + slack_};
    const Eigen::Map<const VectorXd> w(found.point.data(), static_cast<Index>(found.point.size()));
    const VectorXd query = query_.triangle.transpose() * w + constant_;
    const VectorXd u = query_.basis * w;
    result.query.assign(query.begin(), query.end());
    for (std::size_t j = 0; j < norm_.width; ++j) {
      result.row.push_back(norm_.radius() * norm_.gain_at(j) * u[static_cast<Index>(j)] + norm_.bias_at(j));
    }
    return result;
  }

  const NormSpec& norm_;
  Reduced query_;
  Reduced key_;
  VectorXd constant_;
  RowMajor matrix_;
  VectorXd offset_;
  double slack_ = 0.0;
};

}  // namespace

Attention attention(const NormSpec& norm, const HeadMaps& head) {
  check(norm, head);
  const Extremes extremes(norm, head, norm.centers());
  Attention result{.most_uniform = extremes.least(),
                   .sharpest = extremes.largest(),
                   .uniform_without_scaling = extremes.vanishes_somewhere()};
  if (norm.centers()) {
    const Extremes whole(norm, head, false);
    result.uniform_without_projection = whole.least();
    result.sharpest_without_projection = whole.largest();
  }
  return result;
}

}  // namespace normscope::selectability
