#include "head_maps.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Subtracting a mean twice leaves less than its own rounding.
constexpr int passes = 2;

/// The largest s for which |Lᵀ x| >= s |x| is proved, over all x or over x ⊥ 1.
double least_stretch(const MatrixXd& map, bool centers) {
  const double square = map.squaredNorm();
  const double dim = static_cast<double>(map.rows());
  MatrixXd gram = map * map.transpose();
  // Adds a large multiple of 1 1ᵀ, so that the direction 1 does not determine the minimum.
  if (centers) gram.array() += square / dim;
  const double hidden = 4.0 * (rounding(map.cols()) + rounding(map.rows()) * dim) * square;
  const double candidate = symmetric_eigenvalues(gram)[0] - 2.0 * hidden;
  if (!(candidate > 0.0)) return 0.0;
  gram.diagonal().array() -= candidate + hidden;
  // Source  [Rump 2006, Verification of positive definiteness]
  if (!has_cholesky_factor(gram)) return 0.0;
  return std::sqrt(candidate) * (1.0 - rounding(1));
}

}  // namespace

AffineImage::AffineImage(const NormSpec& norm, MatrixView<const double> weight, std::span<const double> bias,
                         const MapError& error, bool centers)
    : map(static_cast<Index>(weight.rows()), static_cast<Index>(weight.width())),
      constant(static_cast<Index>(weight.rows())) {
  double sizes = 0.0;
  for (Index i = 0; i < map.rows(); ++i) {
    const std::span<const double> row = weight.row(static_cast<std::size_t>(i));
    double sum = bias.empty() ? 0.0 : bias[static_cast<std::size_t>(i)];
    double size = std::abs(sum);
    for (Index j = 0; j < map.cols(); ++j) {
      const auto at = static_cast<std::size_t>(j);
      map(i, j) = norm.radius() * row[at] * norm.gain_at(at);
      sum += row[at] * norm.bias_at(at);
      size += std::abs(row[at] * norm.bias_at(at));
    }
    constant[i] = sum;
    sizes += size * size;
  }
  constant_size = std::sqrt(sizes);
  constant_lost = rounding(map.cols()) * constant_size;
  // Two products per entry, and the subtraction of the row mean.
  map_lost = (centers ? rounding(map.cols()) : rounding(1)) * map.norm();
  if (centers) {
    for (int pass = 0; pass < passes; ++pass) map.colwise() -= map.rowwise().mean().eval();
  }
  add(error, norm);
}

/// Π does not lengthen any vector, so |E G| bounds |E G Π|.
void AffineImage::add(const MapError& error, const NormSpec& norm) {
  double map_square = 0.0;
  double constant_square = 0.0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(map.rows()); ++i) {
    double shift = error.bias.empty() ? 0.0 : error.bias[i];
    for (std::size_t j = 0; j < error.weight.width(); ++j) {
      const double entry = norm.radius() * error.weight.row(i)[j] * norm.gain_at(j);
      map_square += entry * entry;
      shift += error.weight.row(i)[j] * std::abs(norm.bias_at(j));
    }
    constant_square += shift * shift;
  }
  const double up = 1.0 + rounding(map.size());
  map_lost += up * std::sqrt(map_square);
  constant_lost += up * std::sqrt(constant_square);
}

AffineImage::AffineImage(const NormSpec& own, bool centers) {
  const MatrixXd identity = MatrixXd::Identity(static_cast<Index>(own.width), static_cast<Index>(own.width));
  *this = AffineImage(own, {identity.data(), own.width, own.width}, {}, {}, centers);
}

AffineImage AffineImage::through(const NormSpec& own, bool centers) const {
  AffineImage result;
  result.map = map;
  result.constant = constant;
  if (centers) {
    for (int pass = 0; pass < passes; ++pass) {
      result.map.rowwise() -= result.map.colwise().mean().eval();
      result.constant.array() -= result.constant.mean();
    }
  }
  double size = 0.0;
  for (Index i = 0; i < map.rows(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    result.map.row(i) *= own.gain_at(at);
    result.constant[i] = result.constant[i] * own.gain_at(at) + own.bias_at(at);
    size = std::max(size, std::abs(own.gain_at(at)));
  }
  result.map_lost = size * (map_lost + rounding(map.rows()) * map.norm());
  result.constant_size = size * constant_size + result.constant.norm();
  result.constant_lost = size * constant_lost + rounding(map.rows()) * result.constant_size;
  return result;
}

void AffineImage::scale_rows(std::span<const double> factors) {
  if (factors.empty()) return;
  const Eigen::Map<const VectorXd> values(factors.data(), map.rows());
  const double largest = values.cwiseAbs().maxCoeff();
  map = (values.asDiagonal() * map).eval();
  constant = constant.cwiseProduct(values).eval();
  map_lost = largest * map_lost + rounding(1) * map.norm();
  constant_size = std::max(largest * constant_size, constant.norm());
  constant_lost = largest * constant_lost + rounding(1) * constant.norm();
}

Reduced::Reduced(const AffineImage& image) {
  const MatrixXd& map = image.map;
  const Index least = std::min(map.rows(), map.cols());
  ThinQr factors = thin_qr(map.transpose());
  basis = std::move(factors.basis);
  triangle = std::move(factors.triangle);
  residual = image.map_lost + (map.transpose() - product(basis, triangle)).norm() +
             rounding(least) * basis.norm() * triangle.norm();
  tilt = (product(basis.transpose(), basis) - MatrixXd::Identity(least, least)).norm() +
         rounding(map.cols()) * basis.squaredNorm();
}

OwnNorm::OwnNorm(const NormSpec& own, const AffineImage& input, bool centers)
    : input_(input.through({.kind = own.kind, .width = own.width, .eps = own.eps}, centers)),
      eps_(own.eps * own.squared_radius()) {
  const double stretch = least_stretch(input_.map, centers) - input_.map_lost;
  const double constant = input_.constant.norm() * (1.0 + rounding(input_.constant.size()));
  radius_ = (stretch - constant - input_.constant_lost) * (1.0 - rounding(1));
  fills_ = radius_ > 0.0 ? radius_ / std::sqrt(radius_ * radius_ + eps_) * (1.0 - rounding(1)) : 0.0;
}

VectorXd OwnNorm::preimage(const VectorXd& v) const {
  // Solves |v| = |z|/sqrt(|z|² + e) for |z|, limited to the radius that the image provably contains.
  const double length = v.norm();
  const double rest = std::sqrt(std::max(0.0, (1.0 - length) * (1.0 + length)));
  const double most = radius_ / std::max(length, unit_roundoff);
  const double stretch = eps_ > 0.0 && rest > 0.0 ? std::min(most, std::sqrt(eps_) / rest) : most;
  return least_squares(input_.map, stretch * v - input_.constant);
}

}  // namespace normscope::heads
