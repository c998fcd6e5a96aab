#include <normscope/heads/projection.hpp>

#include <cmath>
#include <limits>

#include <normscope/core/double_double.hpp>
#include <normscope/core/exact.hpp>

namespace normscope::heads {
namespace {

/// start + Σ a_k b_k.
Bounded dot(const double* a, const double* b, std::size_t count, std::size_t step, double start) {
  constexpr double unit = 0x1p-53;
  DoubleDouble sum(start);
  double size = std::abs(start);
  for (std::size_t k = 0; k < count; ++k) {
    const DoubleDouble product = DoubleDouble(a[k]) * DoubleDouble(b[k * step]);
    sum += product;
    size += std::abs(product.high);
  }
  // Each operation rounds by 16 u² of its result, which is at most the sum of sizes; products may also
  // underflow.
  const double terms = static_cast<double>(count) + 2.0;
  const double error = std::abs(sum.low) + 32.0 * terms * unit * unit * size +
                       8.0 * terms * std::numeric_limits<double>::min();
  return {sum.high, error * (1.0 + 4.0 * unit)};
}

}  // namespace

Projection read_projection(const files::Checkpoint& checkpoint, const models::Linear& part,
                           const models::Linear* between) {
  Projection stored{models::read_weight(checkpoint, part, 0, part.out), models::read_bias(checkpoint, part)};
  if (between == nullptr) return stored;
  const std::vector<double> map = models::read_weight(checkpoint, *between, 0, between->out);
  const std::vector<double> shift = models::read_bias(checkpoint, *between);
  const std::size_t inner = between->out;
  Projection composed;
  composed.weight.reserve(part.out * between->in);
  composed.weight_error.reserve(part.out * between->in);
  for (std::size_t row = 0; row < part.out; ++row) {
    const double* const weights = stored.weight.data() + row * inner;
    for (std::size_t column = 0; column < between->in; ++column) {
      const Bounded entry = dot(weights, map.data() + column, inner, between->in, 0.0);
      composed.weight.push_back(entry.value);
      composed.weight_error.push_back(entry.error);
    }
    if (shift.empty() && stored.bias.empty()) continue;
    const double start = stored.bias.empty() ? 0.0 : stored.bias[row];
    const Bounded entry = shift.empty() ? Bounded{start, 0.0} : dot(weights, shift.data(), inner, 1, start);
    composed.bias.push_back(entry.value);
    composed.bias_error.push_back(entry.error);
  }
  return composed;
}

}  // namespace normscope::heads
