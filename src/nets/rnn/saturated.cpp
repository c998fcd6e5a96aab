#include <normscope/nets/rnn/saturated.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "activation.hpp"
#include "threshold.hpp"

namespace normscope::nets::rnn {
namespace {

using detail::Map;
using detail::positive;
using detail::sign;

/// W x + U h + b for one unit.
Map unit(const Cell& cell, std::size_t map, std::size_t at, std::uint8_t symbol,
         std::span<const double> hidden) {
  const std::size_t n = cell.width;
  const double* const weight = cell.parameters.data() + map * n * (cell.symbols + n + 1);
  const double* const recurrent = weight + n * cell.symbols;
  Map sum;
  sum.add(weight[at * cell.symbols + symbol]);
  for (std::size_t j = 0; j < n; ++j) sum.add(recurrent[at * n + j] * hidden[j]);
  sum.add(recurrent[n * n + at]);
  return sum;
}

void lstm(const Cell& cell, std::uint8_t symbol, State& state) {
  const std::vector<double> old = state.hidden;
  for (std::size_t at = 0; at < cell.width; ++at) {
    const auto gate = [&](std::size_t map) { return unit(cell, map, at, symbol, old); };
    const bool input = positive(gate(0));
    const bool forget = positive(gate(1));
    const bool output = positive(gate(2));
    const double candidate = sign(gate(3));
    double& c = state.cell[at];
    c = (forget ? c : 0.0) + (input ? candidate : 0.0);
    state.hidden[at] = !output ? 0.0 : cell.linear_output ? c : detail::squash(c);
  }
}

void gru(const Cell& cell, std::uint8_t symbol, State& state) {
  const std::vector<double> old = state.hidden;
  std::vector<double> kept = old;
  for (std::size_t at = 0; at < cell.width; ++at) {
    if (!positive(unit(cell, 1, at, symbol, old))) kept[at] = 0.0;
  }
  for (std::size_t at = 0; at < cell.width; ++at) {
    if (!positive(unit(cell, 0, at, symbol, old))) state.hidden[at] = sign(unit(cell, 2, at, symbol, kept));
  }
}

}  // namespace

void advance_saturated(const Cell& cell, std::uint8_t symbol, State& state) {
  NORMSCOPE_ASSERT(symbol < cell.symbols && state.hidden.size() == cell.width);
  switch (cell.kind) {
    case CellKind::lstm: return lstm(cell, symbol, state);
    case CellKind::gru: return gru(cell, symbol, state);
    case CellKind::elman_relu: return advance(cell, symbol, state);
    case CellKind::elman_tanh: break;
  }
  const std::vector<double> old = state.hidden;
  for (std::size_t at = 0; at < cell.width; ++at) state.hidden[at] = sign(unit(cell, 0, at, symbol, old));
}

double Decoder::value(std::span<const double> hidden) const {
  double sum = bias;
  for (std::size_t unit = 0; unit < weight.size(); ++unit) {
    if (activation == Activation::none) {
      sum += weight[unit] * hidden[unit];
      continue;
    }
    double inner = hidden_bias[unit];
    for (std::size_t j = 0; j < hidden.size(); ++j) {
      inner += hidden_weight[unit * hidden.size() + j] * hidden[j];
    }
    sum += weight[unit] * (activation == Activation::relu ? std::max(0.0, inner) : inner > 0.0 ? 1.0 : 0.0);
  }
  return sum;
}

bool accepts(const Acceptor& acceptor, WordView word) {
  validate(acceptor.cell);
  State state = initial(acceptor.cell);
  for (const std::uint8_t symbol : word) {
    if (symbol >= acceptor.cell.symbols) {
      throw Error(ErrorCode::Argument, fmt::format("accepts: symbol {} of the word, expected less than {}",
                                                   symbol, acceptor.cell.symbols));
    }
    advance_saturated(acceptor.cell, symbol, state);
  }
  return acceptor.decoder.value(state.hidden) > 0.0;
}

}  // namespace normscope::nets::rnn
