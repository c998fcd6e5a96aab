#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <normscope/nets/rnn/activation.hpp>
#include <normscope/nets/rnn/cell.hpp>

/// One forward step of a cell for L words at a time. Value i of word l is stored at [i L + l], so that the
/// compiler vectorizes over words; no sum runs across words.
namespace normscope::nets::rnn::detail {

/// A cell's shape with a pointer to its parameters.
struct Shape {
  CellKind kind;
  std::size_t symbols;
  std::size_t width;
  bool linear_output;

  [[nodiscard]] std::size_t gate_size() const { return width * (symbols + width + 1); }
};

inline Shape shape_of(const Cell& cell) { return {cell.kind, cell.symbols, cell.width, cell.linear_output}; }

/// The state at the start of a step.
struct Before {
  const double* hidden;
  const double* cell;  ///< lstm
};

/// Outputs of a step.
struct After {
  double* hidden;
  double* cell;   ///< lstm
  double* extra;  ///< tanh c of an lstm, r ∘ h' of a gru
  double* gates;  ///< activated gates, concatenated; none for elman_tanh and elman_relu
};

/// out = W x + U h + b of the gate whose parameters begin at `p`.
template <std::size_t L>
void affine(const Shape& shape, const double* p, const std::uint8_t* x, const double* h, double* out) {
  const std::size_t n = shape.width;
  const double* const recurrent = p + n * shape.symbols;
  const double* const bias = recurrent + n * n;
  for (std::size_t i = 0; i < n; ++i) {
    double sum[L];
    for (std::size_t l = 0; l < L; ++l) sum[l] = bias[i] + p[i * shape.symbols + x[l]];
    for (std::size_t j = 0; j < n; ++j) {
      const double weight = recurrent[i * n + j];
      for (std::size_t l = 0; l < L; ++l) sum[l] += weight * h[j * L + l];
    }
    for (std::size_t l = 0; l < L; ++l) out[i * L + l] = sum[l];
  }
}

template <std::size_t L>
void lstm_forward(const Shape& shape, const double* p, const std::uint8_t* x, const Before& before,
                  const After& after) {
  const std::size_t n = shape.width * L;
  for (std::size_t k = 0; k < 4; ++k) {
    affine<L>(shape, p + k * shape.gate_size(), x, before.hidden, after.gates + k * n);
  }
  double* const i = after.gates;
  double* const f = i + n;
  double* const o = f + n;
  double* const g = o + n;
  for (std::size_t at = 0; at < 3 * n; ++at) i[at] = logistic(i[at]);
  for (std::size_t at = 0; at < n; ++at) g[at] = squash(g[at]);
  for (std::size_t at = 0; at < n; ++at) after.cell[at] = f[at] * before.cell[at] + i[at] * g[at];
  if (shape.linear_output) {
    std::copy_n(after.cell, n, after.extra);
  } else {
    for (std::size_t at = 0; at < n; ++at) after.extra[at] = squash(after.cell[at]);
  }
  for (std::size_t at = 0; at < n; ++at) after.hidden[at] = o[at] * after.extra[at];
}

template <std::size_t L>
void gru_forward(const Shape& shape, const double* p, const std::uint8_t* x, const Before& before,
                 const After& after) {
  const std::size_t n = shape.width * L;
  double* const z = after.gates;
  double* const r = z + n;
  double* const g = r + n;
  affine<L>(shape, p, x, before.hidden, z);
  affine<L>(shape, p + shape.gate_size(), x, before.hidden, r);
  for (std::size_t at = 0; at < 2 * n; ++at) z[at] = logistic(z[at]);
  for (std::size_t at = 0; at < n; ++at) after.extra[at] = r[at] * before.hidden[at];
  affine<L>(shape, p + 2 * shape.gate_size(), x, after.extra, g);
  for (std::size_t at = 0; at < n; ++at) {
    g[at] = squash(g[at]);
    after.hidden[at] = z[at] * before.hidden[at] + (1.0 - z[at]) * g[at];
  }
}

/// Reads the letters x[0], …, x[L − 1], one for each word.
template <std::size_t L>
void forward(const Shape& shape, const double* p, const std::uint8_t* x, const Before& before,
             const After& after) {
  if (shape.kind == CellKind::lstm) return lstm_forward<L>(shape, p, x, before, after);
  if (shape.kind == CellKind::gru) return gru_forward<L>(shape, p, x, before, after);
  affine<L>(shape, p, x, before.hidden, after.hidden);
  for (std::size_t at = 0; at < shape.width * L; ++at) {
    const double value = after.hidden[at];
    after.hidden[at] = shape.kind == CellKind::elman_tanh ? squash(value) : std::max(0.0, value);
  }
}

// The output layer on h, for L words side by side as in `pass.hpp`.

/// out = V h + v, the parameters V and then v.
template <std::size_t L>
void outputs(std::size_t width, std::size_t count, const double* parameters, const double* h, double* out) {
  for (std::size_t o = 0; o < count; ++o) {
    double sum[L];
    for (std::size_t l = 0; l < L; ++l) sum[l] = parameters[count * width + o];
    for (std::size_t j = 0; j < width; ++j) {
      for (std::size_t l = 0; l < L; ++l) sum[l] += parameters[o * width + j] * h[j * L + l];
    }
    for (std::size_t l = 0; l < L; ++l) out[o * L + l] = sum[l];
  }
}

/// Backpropagates `slopes` of the outputs: adds Vᵀ slopes to `d_h`, and adds to the gradients of V and v.
template <std::size_t L>
void outputs_back(std::size_t width, std::size_t count, const double* parameters, const double* h,
                  const double* slopes, double* d_h, double* gradient) {
  for (std::size_t o = 0; o < count; ++o) {
    for (std::size_t j = 0; j < width; ++j) {
      for (std::size_t l = 0; l < L; ++l) {
        d_h[j * L + l] += parameters[o * width + j] * slopes[o * L + l];
        gradient[(o * width + j) * L + l] += slopes[o * L + l] * h[j * L + l];
      }
    }
    for (std::size_t l = 0; l < L; ++l) gradient[(count * width + o) * L + l] += slopes[o * L + l];
  }
}

/// Converts logits to probabilities, in place.
template <std::size_t L>
void softmax(std::size_t count, double* logits) {
  double most[L];
  double sum[L];
  for (std::size_t l = 0; l < L; ++l) {
    most[l] = logits[l];
    sum[l] = 0.0;
  }
  for (std::size_t o = 1; o < count; ++o) {
    for (std::size_t l = 0; l < L; ++l) most[l] = std::max(most[l], logits[o * L + l]);
  }
  for (std::size_t o = 0; o < count; ++o) {
    for (std::size_t l = 0; l < L; ++l) {
      logits[o * L + l] = decay(logits[o * L + l] - most[l]);
      sum[l] += logits[o * L + l];
    }
  }
  for (std::size_t o = 0; o < count; ++o) {
    for (std::size_t l = 0; l < L; ++l) logits[o * L + l] /= sum[l];
  }
}

// The backward pass of the steps of `pass.hpp`.

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

/// A cell that reads one word, with buffers for a step.
class Runner {
 public:
  /// Requires  a cell that is valid and outlives this
  explicit Runner(const Cell& cell)
      : state(initial(cell)),
        cell_(cell),
        shape_(shape_of(cell)),
        next_(state),
        extra_(cell.width),
        gates_(cell.width * gates(cell.kind).size()) {}

  /// Requires  symbol < cell.symbols
  void read(std::uint8_t symbol) {
    forward<1>(shape_, cell_.parameters.data(), &symbol, {state.hidden.data(), state.cell.data()},
               {next_.hidden.data(), next_.cell.data(), extra_.data(), gates_.data()});
    std::swap(state, next_);
  }

  /// Values of the last step, concatenated.
  [[nodiscard]] std::span<const double> gate_values() const { return gates_; }

  State state;

 private:
  const Cell& cell_;
  Shape shape_;
  State next_;
  std::vector<double> extra_;
  std::vector<double> gates_;
};

}  // namespace normscope::nets::rnn::detail
