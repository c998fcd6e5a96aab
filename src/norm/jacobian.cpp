#include <normscope/norm/jacobian.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::norm {
namespace {

constexpr std::size_t rows_a_piece = 16;

/// v ← R (v/s − z (zᵀv)/s³), the Jacobian between centring and gain, which is symmetric.
void scale_tangent(const NormSpec& spec, std::span<double> z, std::span<double> v) {
  const double length = euclidean_norm(z);
  const double s = std::hypot(length, std::sqrt(spec.eps) * spec.radius());
  if (s == 0.0) return std::fill(v.begin(), v.end(), 0.0);
  CompensatedSum along;
  for (std::size_t i = 0; i < z.size(); ++i) {
    z[i] /= s;
    along.add(z[i] * v[i]);
  }
  for (std::size_t i = 0; i < z.size(); ++i) v[i] = (v[i] - z[i] * along.value()) / s * spec.radius();
}

void multiply(std::span<double> v, const NormSpec& spec, std::size_t begin) {
  for (std::size_t i = 0; i < v.size(); ++i) v[i] *= spec.gain_at(begin + i);
}

void product(std::string_view who, bool transposed, const NormSpec& spec, MatrixView<const double> x,
             MatrixView<const double> v, MatrixView<double> out, unsigned threads) {
  validate(who, spec, x, out);
  if (v.rows() != x.rows() || v.width() != x.width()) {
    throw Error(ErrorCode::Shape, fmt::format("{}: the vectors are {} x {}, expected {} x {}", who, v.rows(),
                                              v.width(), x.rows(), x.width()));
  }
  const std::size_t block = spec.block_width();
  parallel_for(x.rows(), rows_a_piece, threads, [&](std::size_t first, std::size_t last) {
    std::vector<double> z(block);
    for (std::size_t row = first; row < last; ++row) {
      for (std::size_t begin = 0; begin < spec.width; begin += block) {
        const std::span<const double> from = v.row(row).subspan(begin, block);
        const std::span<double> to = out.row(row).subspan(begin, block);
        std::copy(from.begin(), from.end(), to.begin());
        std::copy_n(x.row(row).begin() + static_cast<std::ptrdiff_t>(begin), block, z.begin());
        if (spec.centers()) center(z);
        if (transposed) multiply(to, spec, begin);
        if (!transposed && spec.centers()) center(to);
        scale_tangent(spec, z, to);
        if (transposed && spec.centers()) center(to);
        if (!transposed) multiply(to, spec, begin);
      }
    }
  });
}

}  // namespace

void jacobian_vector(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> v,
                     MatrixView<double> out, unsigned threads) {
  product("jacobian_vector", false, spec, x, v, out, threads);
}

void vector_jacobian(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> w,
                     MatrixView<double> out, unsigned threads) {
  product("vector_jacobian", true, spec, x, w, out, threads);
}

}  // namespace normscope::norm
