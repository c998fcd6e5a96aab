#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <normscope/nets/rnn/cell.hpp>

#include "activation.hpp"

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

}  // namespace normscope::nets::rnn::detail
