#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "pass.hpp"

namespace normscope::nets::rnn::detail {

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
