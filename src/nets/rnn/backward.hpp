#pragma once

#include "pass.hpp"

/// The backward pass of the steps of `pass.hpp`.
namespace normscope::nets::rnn::detail {

/// Backpropagates δ of one map's values: adds to the gradients of W, U and b, word by word, and adds Uᵀδ to
/// `d_input`, where `input` is the vector that U was applied to.
template <std::size_t L>
void push_back(const Shape& shape, const double* p, const std::uint8_t* x, const double* delta,
               const double* input, double* d_input, double* gradient) {
  const std::size_t n = shape.width;
  const double* const recurrent = p + n * shape.symbols;
  double* const d_recurrent = gradient + n * shape.symbols * L;
  double* const d_bias = d_recurrent + n * n * L;
  for (std::size_t i = 0; i < n; ++i) {
    double d[L];
    for (std::size_t l = 0; l < L; ++l) d[l] = delta[i * L + l];
    for (std::size_t l = 0; l < L; ++l) {
      d_bias[i * L + l] += d[l];
      gradient[(i * shape.symbols + x[l]) * L + l] += d[l];
    }
    for (std::size_t j = 0; j < n; ++j) {
      const double weight = recurrent[i * n + j];
      // Local variables, so that the compiler knows that nothing overlaps.
      double to_weight[L];
      double to_input[L];
      for (std::size_t l = 0; l < L; ++l) {
        to_weight[l] = d_recurrent[(i * n + j) * L + l] + d[l] * input[j * L + l];
        to_input[l] = d_input[j * L + l] + d[l] * weight;
      }
      for (std::size_t l = 0; l < L; ++l) d_recurrent[(i * n + j) * L + l] = to_weight[l];
      for (std::size_t l = 0; l < L; ++l) d_input[j * L + l] = to_input[l];
    }
  }
}

/// Derivatives of the loss with respect to a state.
struct Slopes {
  double* hidden;
  double* cell;  ///< lstm
};

/// One step backwards: `d` is with respect to the state after the step, and then with respect to the state
/// before. `delta` has space for every map's values and one more vector of the width.
template <std::size_t L>
void backward(const Shape& shape, const double* p, const std::uint8_t* x, const Before& before,
              const After& after, const Slopes& d, double* delta, double* gradient) {
  const std::size_t n = shape.width * L;
  const std::size_t map = shape.gate_size();
  const auto push = [&](std::size_t index, const double* input, double* d_input) {
    push_back<L>(shape, p + index * map, x, delta + index * n, input, d_input, gradient + index * map * L);
  };
  if (shape.kind == CellKind::lstm) {
    const double* const i = after.gates;
    const double* const f = i + n;
    const double* const o = f + n;
    const double* const g = o + n;
    for (std::size_t at = 0; at < n; ++at) {
      const double slope = shape.linear_output ? 1.0 : 1.0 - after.extra[at] * after.extra[at];
      const double d_cell = d.cell[at] + d.hidden[at] * o[at] * slope;
      delta[at] = d_cell * g[at] * i[at] * (1.0 - i[at]);
      delta[n + at] = d_cell * before.cell[at] * f[at] * (1.0 - f[at]);
      delta[2 * n + at] = d.hidden[at] * after.extra[at] * o[at] * (1.0 - o[at]);
      delta[3 * n + at] = d_cell * i[at] * (1.0 - g[at] * g[at]);
      d.cell[at] = d_cell * f[at];
      d.hidden[at] = 0.0;
    }
    for (std::size_t gate = 0; gate < 4; ++gate) push(gate, before.hidden, d.hidden);
    return;
  }
  if (shape.kind == CellKind::gru) {
    const double* const z = after.gates;
    const double* const r = z + n;
    const double* const g = r + n;
    double* const d_kept = delta + 3 * n;
    for (std::size_t at = 0; at < n; ++at) {
      const double d_hidden = d.hidden[at];
      delta[at] = d_hidden * (before.hidden[at] - g[at]) * z[at] * (1.0 - z[at]);
      delta[2 * n + at] = d_hidden * (1.0 - z[at]) * (1.0 - g[at] * g[at]);
      d.hidden[at] = d_hidden * z[at];
      d_kept[at] = 0.0;
    }
    push(2, after.extra, d_kept);
    for (std::size_t at = 0; at < n; ++at) {
      delta[n + at] = d_kept[at] * before.hidden[at] * r[at] * (1.0 - r[at]);
      d.hidden[at] += d_kept[at] * r[at];
    }
    push(0, before.hidden, d.hidden);
    push(1, before.hidden, d.hidden);
    return;
  }
  for (std::size_t at = 0; at < n; ++at) {
    const double h = after.hidden[at];
    const double slope = shape.kind == CellKind::elman_tanh ? 1.0 - h * h : h > 0.0 ? 1.0 : 0.0;
    delta[at] = d.hidden[at] * slope;
    d.hidden[at] = 0.0;
  }
  push(0, before.hidden, d.hidden);
}

}  // namespace normscope::nets::rnn::detail
