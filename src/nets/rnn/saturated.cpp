#include <normscope/nets/rnn/saturated.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/nets/rnn/activation.hpp>

namespace normscope::nets::rnn {
namespace {

// The limits of sigmoid and tanh.

/// A sum, and the sum of the magnitudes of its terms.
struct Map {
  double value = 0.0;
  double size = 0.0;

  void add(double term) {
    value += term;
    size += std::abs(term);
  }
};

/// Errors    Argument if rounding may have decided
bool positive(const Map& map) {
  constexpr double tie = 0x1p-40;
  if (!(std::abs(map.value) > tie * map.size)) {
    throw Error(ErrorCode::Argument,
                fmt::format("saturated: a gate at {}, expected one side of 0: there is no limit", map.value));
  }
  return map.value > 0.0;
}

double sign(const Map& map) { return positive(map) ? 1.0 : -1.0; }

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
    state.hidden[at] = !output ? 0.0 : cell.linear_output ? c : squash(c);
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

std::size_t map_size(const Qrnn& layer) { return layer.width * (layer.window * layer.inputs + 1); }

/// The gates of a unit for the newest inputs at `x`, of which `known` are not before the start.
struct Gates {
  double candidate;
  bool forget;
  bool input;
  bool output;
};

/// Requires  x points to the newest input, with older ones before it
Gates gates_of(const Qrnn& layer, std::size_t unit, const double* x, std::size_t known) {
  const auto map = [&](Qrnn::Map which) {
    const double* const p = layer.parameters.data() + which * map_size(layer);
    Map sum;
    for (std::size_t back = 0; back < layer.window && back < known; ++back) {
      for (std::size_t from = 0; from < layer.inputs; ++from) {
        sum.add(p[(unit * layer.window + back) * layer.inputs + from] *
                *(x - static_cast<std::ptrdiff_t>(back * layer.inputs) + static_cast<std::ptrdiff_t>(from)));
      }
    }
    sum.add(p[layer.width * layer.window * layer.inputs + unit]);
    return sum;
  };
  return {sign(map(Qrnn::candidate)), positive(map(Qrnn::forget)), positive(map(Qrnn::input)),
          positive(map(Qrnn::output))};
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

Qrnn Qrnn::zeros(std::size_t window, std::size_t inputs, std::size_t width) {
  Qrnn layer{.window = window, .inputs = inputs, .width = width};
  layer.parameters.resize(4 * map_size(layer));
  return layer;
}

double& Qrnn::weight(Map map, std::size_t unit, std::size_t back, std::size_t from) {
  NORMSCOPE_ASSERT(unit < width && back < window && from < inputs);
  return parameters[map * map_size(*this) + (unit * window + back) * inputs + from];
}

double& Qrnn::bias(Map map, std::size_t unit) {
  NORMSCOPE_ASSERT(unit < width);
  return parameters[map * map_size(*this) + width * window * inputs + unit];
}

QrnnStates saturated(const Qrnn& layer, std::span<const double> x) {
  NORMSCOPE_ASSERT(layer.inputs > 0 && x.size() % layer.inputs == 0);
  const std::size_t steps = x.size() / layer.inputs;
  QrnnStates states{std::vector<double>(steps * layer.width), std::vector<double>(steps * layer.width)};
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t unit = 0; unit < layer.width; ++unit) {
      const Gates gates = gates_of(layer, unit, x.data() + step * layer.inputs, step + 1);
      const double before = step == 0 ? 0.0 : states.cell[(step - 1) * layer.width + unit];
      const double c = (gates.forget ? before : 0.0) + (gates.input ? gates.candidate : 0.0);
      states.cell[step * layer.width + unit] = c;
      states.hidden[step * layer.width + unit] = gates.output ? c : 0.0;
    }
  }
  return states;
}

std::vector<double> last_cell(const Qrnn& layer, WordView word) {
  if (word.empty()) return std::vector<double>(layer.width);
  const QrnnStates states = saturated(layer, one_hot(word, layer.inputs));
  return {states.cell.end() - static_cast<std::ptrdiff_t>(layer.width), states.cell.end()};
}

std::vector<double> one_hot(WordView word, std::size_t letters) {
  std::vector<double> rows(word.size() * letters);
  for (std::size_t at = 0; at < word.size(); ++at) {
    NORMSCOPE_ASSERT(word[at] < letters);
    rows[at * letters + word[at]] = 1.0;
  }
  return rows;
}

CounterMachine counter_machine(const Qrnn& layer) {
  const std::size_t letters = layer.inputs;
  // State 0 is the start. A history of m letters is encoded as a number in base `letters`, after all shorter
  // ones.
  std::vector<Word> pasts;
  for (Word past; past.size() < layer.window; next_word(past, letters)) pasts.push_back(past);
  const auto number = [&](WordView past) {
    std::size_t shorter = 0;
    std::size_t value = 0;
    std::size_t power = 1;
    for (const std::uint8_t letter : past) {
      shorter += power;
      power *= letters;
      value = value * letters + letter;
    }
    return shorter + value;
  };
  CounterMachine machine(letters, pasts.size(), layer.width);
  for (std::size_t state = 0; state < pasts.size(); ++state) {
    for (std::size_t letter = 0; letter < letters; ++letter) {
      Word window = pasts[state];
      window.push_back(static_cast<std::uint8_t>(letter));
      const std::vector<double> x = one_hot(window, letters);
      std::vector<Update> updates;
      for (std::size_t unit = 0; unit < layer.width; ++unit) {
        const Gates gates = gates_of(layer, unit, x.data() + (window.size() - 1) * letters, window.size());
        updates.push_back({gates.forget, gates.input ? static_cast<std::int64_t>(gates.candidate) : 0});
      }
      const std::size_t forgotten = window.size() < layer.window ? 0 : 1;
      machine.set(letter, state, number(WordView(window).subspan(forgotten)), updates);
    }
  }
  return machine;
}

Qrnn anbn_layer() {
  Qrnn layer = Qrnn::zeros(2, 2, 2);
  for (std::size_t unit = 0; unit < 2; ++unit) {
    layer.bias(Qrnn::forget, unit) = 1.0;
    layer.bias(Qrnn::output, unit) = 1.0;
  }
  layer.bias(Qrnn::input, 0) = 1.0;
  layer.weight(Qrnn::candidate, 0, 0, 0) = 1.0;
  layer.weight(Qrnn::candidate, 0, 0, 1) = -1.0;
  layer.bias(Qrnn::candidate, 1) = 1.0;
  layer.weight(Qrnn::input, 1, 0, 0) = 2.0;
  layer.weight(Qrnn::input, 1, 1, 1) = 2.0;
  layer.bias(Qrnn::input, 1) = -3.0;
  return layer;
}

bool accepts_anbn(const Qrnn& layer, WordView word) {
  const std::vector<double> c = last_cell(layer, word);
  return !(c[0] > 0.0) && !(c[0] < 0.0) && !(c[1] > 0.0);
}

PrefixLayers prefix_layers() {
  enum Unit : std::size_t { ba, begins_with_b, letter, units };
  PrefixLayers layers{Qrnn::zeros(2, 2, units), Qrnn::zeros(1, units, 1)};
  Qrnn& first = layers.first;
  for (std::size_t unit = 0; unit < units; ++unit) {
    first.bias(Qrnn::forget, unit) = unit == letter ? -1.0 : 1.0;
    first.bias(Qrnn::output, unit) = 1.0;
    first.bias(Qrnn::candidate, unit) = unit == letter ? 0.0 : 1.0;
  }
  first.weight(Qrnn::input, ba, 0, 0) = 2.0;
  first.weight(Qrnn::input, ba, 1, 1) = 2.0;
  first.bias(Qrnn::input, ba) = -3.0;
  // The current letter is b and there is none before.
  first.weight(Qrnn::input, begins_with_b, 0, 1) = 2.0;
  first.weight(Qrnn::input, begins_with_b, 1, 0) = -2.0;
  first.weight(Qrnn::input, begins_with_b, 1, 1) = -2.0;
  first.bias(Qrnn::input, begins_with_b) = -1.0;
  // 1 for a, −1 for b.
  first.bias(Qrnn::input, letter) = 1.0;
  first.weight(Qrnn::candidate, letter, 0, 0) = 1.0;
  first.weight(Qrnn::candidate, letter, 0, 1) = -1.0;

  Qrnn& second = layers.second;
  second.bias(Qrnn::forget, 0) = 1.0;
  second.bias(Qrnn::output, 0) = 1.0;
  second.weight(Qrnn::input, 0, 0, ba) = -2.0;
  second.bias(Qrnn::input, 0) = 1.0;
  second.weight(Qrnn::candidate, 0, 0, letter) = 1.0;
  second.weight(Qrnn::candidate, 0, 0, begins_with_b) = 2.0;
  return layers;
}

bool accepts_prefix(const PrefixLayers& layers, WordView word) {
  if (word.empty()) return true;
  const QrnnStates first = saturated(layers.first, one_hot(word, layers.first.inputs));
  return saturated(layers.second, first.hidden).cell.back() <= 0.0;
}

}  // namespace normscope::nets::rnn
