#include "head_weights.hpp"

#include <normscope/numeric/double_double.hpp>

namespace normscope::audit {
namespace {

double dot(const double* a, const double* b, std::size_t count, std::size_t step, double start) {
  DoubleDouble sum(start);
  for (std::size_t k = 0; k < count; ++k) sum += DoubleDouble(a[k]) * DoubleDouble(b[k * step]);
  return sum.high;
}

}  // namespace

Projection read_projection(const checkpoint::Checkpoint& checkpoint, const model::Linear& part,
                           const model::Linear* between) {
  Projection stored{model::read_weight(checkpoint, part, 0, part.out), model::read_bias(checkpoint, part)};
  if (between == nullptr) return stored;
  const std::vector<double> map = model::read_weight(checkpoint, *between, 0, between->out);
  const std::vector<double> shift = model::read_bias(checkpoint, *between);
  const std::size_t inner = between->out;
  Projection composed;
  composed.weight.resize(part.out * between->in);
  for (std::size_t row = 0; row < part.out; ++row) {
    const double* const weights = stored.weight.data() + row * inner;
    for (std::size_t column = 0; column < between->in; ++column) {
      composed.weight[row * between->in + column] =
          dot(weights, map.data() + column, inner, between->in, 0.0);
    }
    if (shift.empty() && stored.bias.empty()) continue;
    const double start = stored.bias.empty() ? 0.0 : stored.bias[row];
    composed.bias.push_back(shift.empty() ? start : dot(weights, shift.data(), inner, 1, start));
  }
  return composed;
}

}  // namespace normscope::audit
