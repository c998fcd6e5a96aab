#include <normscope/norm/jacobian.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/sum.hpp>

#include "elementwise.hpp"
#include "plain_block.hpp"

namespace normscope::norm {
namespace {

constexpr std::size_t jacobian_rows_per_task = 16;

/// v ← R (v − q (qᵀv))/s, the symmetric Jacobian between centring and gain.
void scale_tangent(const NormSpec& spec, std::span<const double> q, const detail::Length& s,
                   std::span<double> v) {
  if (s.is_zero()) return std::fill(v.begin(), v.end(), 0.0);
  CompensatedSum along;
  for (std::size_t i = 0; i < q.size(); ++i) along.add(q[i] * v[i]);
  for (std::size_t i = 0; i < q.size(); ++i) {
    v[i] = s.divide(v[i] - q[i] * along.value()) * spec.radius();
  }
}

void product(std::string_view who, bool transposed, const NormSpec& spec, MatrixView<const double> x,
             MatrixView<const double> v, MatrixView<double> out, unsigned threads) {
  validate(who, spec, x, out);
  detail::require_vectors(who, x, v);
  if (spec.elementwise()) return detail::elementwise_jacobian(spec, x, v, out, threads);
  const std::size_t block = spec.block_width();
  parallel_for(x.rows(), jacobian_rows_per_task, threads, [&](std::size_t first, std::size_t last) {
    std::vector<double> q(block);
    for (std::size_t row = first; row < last; ++row) {
      for (std::size_t begin = 0; begin < spec.width; begin += block) {
        const std::span<const double> from = v.row(row).subspan(begin, block);
        const std::span<double> to = out.row(row).subspan(begin, block);
        const detail::Length s = detail::relative_deviations(spec, x.row(row).subspan(begin, block), q);
        if (transposed) {
          detail::multiply_by_gain(spec, begin, from, to);
        } else {
          std::copy(from.begin(), from.end(), to.begin());
        }
        if (spec.centers()) center(to);
        scale_tangent(spec, q, s, to);
        if (!transposed) detail::multiply_by_gain(spec, begin, to, to);
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
