#include "attention_side.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/eigen/row_major.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/svd.hpp>

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
  VectorXd u = reduced_.basis * (seen_ * (seen_.transpose() * w));
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

}  // namespace normscope::heads
