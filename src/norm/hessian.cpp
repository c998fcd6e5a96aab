#include <normscope/norm/hessian.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/sum.hpp>

#include "elementwise.hpp"
#include "plain_block.hpp"

namespace normscope::norm {
namespace {

constexpr std::size_t hessian_rows_per_task = 16;

double dot(std::span<const double> a, std::span<const double> b) {
  CompensatedSum sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.add(a[i] * b[i]);
  return sum.value();
}

/// v ← Πv/s.
void bring_to_scale(const NormSpec& spec, const detail::Length& s, std::span<double> v) {
  if (spec.centers()) center(v);
  for (double& value : v) value = s.divide(value);
}

/// out = T(a, b), for a and b already divided by s.
void bend(const NormSpec& spec, std::span<const double> q, std::span<const double> a,
          std::span<const double> b, std::span<double> out) {
  const double along_a = dot(q, a);
  const double along_b = dot(q, b);
  const double along = 3.0 * (along_a * along_b) - dot(a, b);
  for (std::size_t i = 0; i < q.size(); ++i) {
    out[i] = spec.radius() * (q[i] * along - (a[i] * along_b + b[i] * along_a));
  }
}

void product(std::string_view who, bool transposed, const NormSpec& spec, MatrixView<const double> x,
             MatrixView<const double> u, MatrixView<const double> v, MatrixView<double> out,
             unsigned threads) {
  validate(who, spec, x, out);
  detail::require_vectors(who, x, u);
  detail::require_vectors(who, x, v);
  if (spec.elementwise()) return detail::elementwise_second(spec, x, u, v, out, threads);
  const std::size_t block = spec.block_width();
  parallel_for(x.rows(), hessian_rows_per_task, threads, [&](std::size_t first, std::size_t last) {
    std::vector<double> q(block);
    std::vector<double> a(block);
    std::vector<double> b(block);
    for (std::size_t row = first; row < last; ++row) {
      for (std::size_t begin = 0; begin < spec.width; begin += block) {
        const auto part = [&](MatrixView<const double> rows) { return rows.row(row).subspan(begin, block); };
        const std::span<double> to = out.row(row).subspan(begin, block);
        const detail::Length s = detail::relative_deviations(spec, part(x), q);
        if (s.is_zero()) {
          std::fill(to.begin(), to.end(), 0.0);
          continue;
        }
        std::copy_n(part(u).begin(), block, a.begin());
        std::copy_n(part(v).begin(), block, b.begin());
        if (transposed) detail::multiply_by_gain(spec, begin, a, a);
        bring_to_scale(spec, s, a);
        bring_to_scale(spec, s, b);
        bend(spec, q, a, b, to);
        if (!transposed) detail::multiply_by_gain(spec, begin, to, to);
      }
    }
  });
}

}  // namespace

void second_derivative(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> u,
                       MatrixView<const double> v, MatrixView<double> out, unsigned threads) {
  product("second_derivative", false, spec, x, u, v, out, threads);
}

void hessian_vector(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> w,
                    MatrixView<const double> v, MatrixView<double> out, unsigned threads) {
  product("hessian_vector", true, spec, x, w, v, out, threads);
}

}  // namespace normscope::norm
