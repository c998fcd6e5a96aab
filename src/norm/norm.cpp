#include <normscope/norm/norm.hpp>

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/norm/jacobian.hpp>
#include <normscope/norm/kernels.hpp>
#include <normscope/numeric/sum.hpp>

#include "plain_block.hpp"

namespace normscope::norm {
namespace {

/// One row, before gain and bias.
void normalize(const NormSpec& spec, std::span<const double> x, std::span<double> y) {
  const std::size_t block = spec.block_width();
  for (std::size_t begin = 0; begin < spec.width; begin += block) {
    detail::relative_deviations(spec, x.subspan(begin, block), y.subspan(begin, block));
  }
  for (double& value : y) value *= spec.radius();
}

void require_width(std::string_view what, std::span<const double> gradient, std::size_t width) {
  if (gradient.empty() || gradient.size() == width) return;
  throw Error(ErrorCode::Shape,
              fmt::format("backward: {} has {} entries, width is {}", what, gradient.size(), width));
}

void round(const std::vector<CompensatedSum>& sums, std::span<double> gradient) {
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = sums[i].value();
}

}  // namespace

void forward(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y) {
  validate("norm", spec, x, y);
  if (spec.elementwise()) return normalize<double>(view(spec), x, y, 1);
  for (std::size_t row = 0; row < x.rows(); ++row) {
    normalize(spec, x.row(row), y.row(row));
    for (std::size_t i = 0; i < spec.width; ++i) {
      y.row(row)[i] = y.row(row)[i] * spec.gain_at(i) + spec.bias_at(i);
    }
  }
}

void backward(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> dy,
              MatrixView<double> dx, std::span<double> dgain, std::span<double> dbias) {
  validate("backward", spec, x, dx);
  detail::require_vectors("backward", x, dy);
  require_width("dgain", dgain, spec.width);
  require_width("dbias", dbias, spec.width);
  if (spec.elementwise()) {
    return normalize_backward<double>(view(spec), x, dy, dx, {.gain = dgain, .bias = dbias}, 1);
  }
  std::vector<CompensatedSum> of_gain(spec.width);
  std::vector<CompensatedSum> of_bias(spec.width);
  std::vector<double> normalized(spec.width);
  for (std::size_t row = 0; row < x.rows(); ++row) {
    normalize(spec, x.row(row), normalized);
    for (std::size_t i = 0; i < spec.width; ++i) {
      of_gain[i].add(dy.row(row)[i] * normalized[i]);
      of_bias[i].add(dy.row(row)[i]);
    }
  }
  vector_jacobian(spec, x, dy, dx, 1);
  round(of_gain, dgain);
  round(of_bias, dbias);
}

}  // namespace normscope::norm
