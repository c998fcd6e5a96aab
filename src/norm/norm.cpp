#include <normscope/norm/norm.hpp>

#include <algorithm>
#include <cmath>

#include <normscope/numeric/sum.hpp>

namespace normscope::norm {
namespace {

/// One block, before gain and bias.
void normalize(const NormSpec& spec, std::span<const double> x, std::span<double> y) {
  std::copy(x.begin(), x.end(), y.begin());
  if (spec.centers()) center(y);
  const double length = euclidean_norm(y);
  if (length == 0.0) return;
  const double eps_length = std::sqrt(spec.eps) * spec.radius();
  const double denominator = std::hypot(length, eps_length);
  // Dividing first keeps radius · value from overflowing.
  for (double& value : y) value = value / denominator * spec.radius();
}

}  // namespace

void forward(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y) {
  validate("norm", spec, x, y);
  const std::size_t block = spec.block_width();
  for (std::size_t row = 0; row < x.rows(); ++row) {
    for (std::size_t begin = 0; begin < spec.width; begin += block) {
      normalize(spec, x.row(row).subspan(begin, block), y.row(row).subspan(begin, block));
    }
    for (std::size_t i = 0; i < spec.width; ++i) {
      y.row(row)[i] = y.row(row)[i] * spec.gain_at(i) + spec.bias_at(i);
    }
  }
}

}  // namespace normscope::norm
