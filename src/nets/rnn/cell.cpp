#include <normscope/nets/rnn/cell.hpp>

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "pass.hpp"

namespace normscope::nets::rnn {
namespace {

constexpr std::string_view lstm_gates[] = {"i", "f", "o", "g"};
constexpr std::string_view gru_gates[] = {"z", "r", "g"};
constexpr std::size_t most_symbols = 256;

}  // namespace

std::string_view to_string(CellKind kind) {
  switch (kind) {
    case CellKind::lstm: return "lstm";
    case CellKind::gru: return "gru";
    case CellKind::elman_tanh: return "elman_tanh";
    case CellKind::elman_relu: break;
  }
  return "elman_relu";
}

CellKind cell_kind(std::string_view name) {
  for (const CellKind kind : {CellKind::lstm, CellKind::gru, CellKind::elman_tanh, CellKind::elman_relu}) {
    if (to_string(kind) == name) return kind;
  }
  throw Error(ErrorCode::Argument,
              fmt::format("unknown cell \"{}\", expected lstm, gru, elman_tanh or elman_relu", name));
}

std::span<const std::string_view> gates(CellKind kind) {
  if (kind == CellKind::lstm) return lstm_gates;
  if (kind == CellKind::gru) return gru_gates;
  return {};
}

std::size_t maps(CellKind kind) { return std::max<std::size_t>(1, gates(kind).size()); }

Cell Cell::zeros(CellKind kind, std::size_t symbols, std::size_t width) {
  Cell cell{.kind = kind, .symbols = symbols, .width = width};
  cell.parameters.resize(maps(kind) * detail::shape_of(cell).gate_size());
  return cell;
}

std::span<double> Cell::weight(std::size_t map) {
  NORMSCOPE_ASSERT(map < maps(kind));
  return std::span(parameters).subspan(map * detail::shape_of(*this).gate_size(), width * symbols);
}

std::span<double> Cell::recurrent(std::size_t map) {
  return {weight(map).data() + width * symbols, width * width};
}

std::span<double> Cell::bias(std::size_t map) { return {recurrent(map).data() + width * width, width}; }

void validate(const Cell& cell) {
  if (cell.symbols == 0 || cell.symbols > most_symbols || cell.width == 0) {
    throw Error(ErrorCode::Argument, fmt::format("cell with {} symbols and {} units, expected 1 to {} and 1 "
                                                 "or more",
                                                 cell.symbols, cell.width, most_symbols));
  }
  const std::size_t expected = maps(cell.kind) * detail::shape_of(cell).gate_size();
  if (cell.parameters.size() != expected) {
    throw Error(ErrorCode::Shape,
                fmt::format("cell with {} parameters, expected {} for {} of width {}", cell.parameters.size(),
                            expected, to_string(cell.kind), cell.width));
  }
}

State initial(const Cell& cell) {
  return {std::vector<double>(cell.width), std::vector<double>(cell.kind == CellKind::lstm ? cell.width : 0)};
}

void advance(const Cell& cell, std::uint8_t symbol, State& state) {
  NORMSCOPE_ASSERT(symbol < cell.symbols && state.hidden.size() == cell.width);
  detail::Runner runner(cell);
  std::swap(runner.state, state);
  runner.read(symbol);
  std::swap(runner.state, state);
}

std::span<const double> Trace::of(std::string_view name) const {
  const auto found =
      std::find_if(signals.begin(), signals.end(), [&](const Signal& signal) { return signal.name == name; });
  NORMSCOPE_ASSERT(found != signals.end());
  return found->values;
}

Trace trace(const Cell& cell, WordView word) {
  validate(cell);
  const std::size_t n = cell.width;
  Trace trace{.steps = word.size(), .width = n};
  const auto add = [&](std::string_view name) { trace.signals.push_back({name, {}}); };
  add("h");
  if (cell.kind == CellKind::lstm) add("c");
  const std::size_t first_gate = trace.signals.size();
  for (const std::string_view gate : gates(cell.kind)) add(gate);

  detail::Runner runner(cell);
  for (const std::uint8_t symbol : word) {
    if (symbol >= cell.symbols) {
      throw Error(ErrorCode::Argument,
                  fmt::format("trace: symbol {} of the word, expected less than {}", symbol, cell.symbols));
    }
    runner.read(symbol);
    const auto keep = [&](std::size_t signal, const double* from) {
      trace.signals[signal].values.insert(trace.signals[signal].values.end(), from, from + n);
    };
    keep(0, runner.state.hidden.data());
    if (cell.kind == CellKind::lstm) keep(1, runner.state.cell.data());
    for (std::size_t gate = 0; first_gate + gate < trace.signals.size(); ++gate) {
      keep(first_gate + gate, runner.gate_values().data() + gate * n);
    }
  }
  return trace;
}

Cell scaled(Cell cell, double factor) {
  for (double& parameter : cell.parameters) parameter *= factor;
  return cell;
}

}  // namespace normscope::nets::rnn
