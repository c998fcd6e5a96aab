#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/cell.hpp>

/// A second implementation of the cells, by the textbook formulas in extended precision, without shared code.
namespace normscope::nets::rnn::test {

using Long = long double;
using LongVector = std::vector<Long>;

struct LongState {
  LongVector hidden;
  LongVector cell;
};

inline Long logistic(Long x) { return 1.0L / (1.0L + std::exp(-x)); }

inline LongVector map(const Cell& cell, const LongVector& parameters, std::size_t index, std::uint8_t symbol,
                      const LongVector& hidden) {
  const std::size_t n = cell.width;
  const Long* at = parameters.data() + index * (n * cell.symbols + n * n + n);
  LongVector out(n);
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = at[i * cell.symbols + symbol] + at[n * cell.symbols + n * n + i];
    for (std::size_t j = 0; j < n; ++j) out[i] += at[n * cell.symbols + i * n + j] * hidden[j];
  }
  return out;
}

/// Reads one letter; `parameters` replace the cell's own.
inline LongState step(const Cell& cell, const LongVector& parameters, std::uint8_t symbol,
                      const LongState& state) {
  const auto y = [&](std::size_t index, const LongVector& hidden) {
    return map(cell, parameters, index, symbol, hidden);
  };
  LongState next = state;
  if (cell.kind == CellKind::lstm) {
    const LongVector i = y(0, state.hidden);
    const LongVector f = y(1, state.hidden);
    const LongVector o = y(2, state.hidden);
    const LongVector g = y(3, state.hidden);
    for (std::size_t k = 0; k < cell.width; ++k) {
      next.cell[k] = logistic(f[k]) * state.cell[k] + logistic(i[k]) * std::tanh(g[k]);
      next.hidden[k] = logistic(o[k]) * (cell.linear_output ? next.cell[k] : std::tanh(next.cell[k]));
    }
  } else if (cell.kind == CellKind::gru) {
    const LongVector z = y(0, state.hidden);
    const LongVector r = y(1, state.hidden);
    LongVector kept = state.hidden;
    for (std::size_t k = 0; k < cell.width; ++k) kept[k] *= logistic(r[k]);
    const LongVector g = y(2, kept);
    for (std::size_t k = 0; k < cell.width; ++k) {
      next.hidden[k] = logistic(z[k]) * state.hidden[k] + logistic(-z[k]) * std::tanh(g[k]);
    }
  } else {
    next.hidden = y(0, state.hidden);
    for (Long& value : next.hidden) {
      value = cell.kind == CellKind::elman_tanh ? std::tanh(value) : value > 0.0L ? value : 0.0L;
    }
  }
  return next;
}

inline LongState start(const Cell& cell) { return {LongVector(cell.width), LongVector(cell.width)}; }

inline Cell random_cell(CellKind kind, std::size_t symbols, std::size_t width, double size, Random& random) {
  Cell cell = Cell::zeros(kind, symbols, width);
  for (double& parameter : cell.parameters) parameter = size * (2.0 * random.uniform() - 1.0);
  return cell;
}

inline Word random_word(std::size_t length, std::size_t letters, Random& random) {
  Word word(length);
  for (std::uint8_t& letter : word) letter = static_cast<std::uint8_t>(random.below(letters));
  return word;
}

inline constexpr CellKind every_kind[] = {CellKind::lstm, CellKind::gru, CellKind::elman_tanh,
                                          CellKind::elman_relu};

}  // namespace normscope::nets::rnn::test
