#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <normscope/nets/rnn/language.hpp>

/// Recurrent cells that read a word letter by letter. σ is the logistic function, ∘ the entrywise product, x
/// one-hot, and ' marks the previous step. A gate y is y = σ(W_y x + U_y h' + b_y), and g the same with tanh:
///   lstm        c = f ∘ c' + i ∘ g,  h = o ∘ tanh(c)
///   gru         h = z ∘ h' + (1 − z) ∘ g,  where g sees U_g (r ∘ h')
///   elman_tanh  h = tanh(W x + U h' + b)
///   elman_relu  h = max(0, W x + U h' + b)
/// An embedding of letters would be absorbed by W, so there is none. h and c are initially 0.
///
/// Source    [Weiss, Goldberg, Yahav 2018, section 2]; [Merrill et al. 2020, section 2]
namespace normscope::nets::rnn {

enum class CellKind : std::uint8_t { lstm, gru, elman_tanh, elman_relu };

[[nodiscard]] std::string_view to_string(CellKind kind);
/// The kind of that name: lstm, gru, elman_tanh, elman_relu.
///
/// Errors    Argument if there is none
[[nodiscard]] CellKind cell_kind(std::string_view name);
/// Names of the gates in the order of their maps: i f o g, z r g, or none.
[[nodiscard]] std::span<const std::string_view> gates(CellKind kind);
/// Number of affine maps of a cell: one per gate, or one without gates.
[[nodiscard]] std::size_t maps(CellKind kind);

/// A cell and its parameters: map after map W (width, symbols), U (width, width), b (width).
struct Cell {
  CellKind kind = CellKind::lstm;
  std::size_t symbols = 0;
  std::size_t width = 0;
  std::vector<double> parameters{};
  bool linear_output = false;  ///< lstm: h = o ∘ c, which distinguishes large counts

  /// All parameters 0.
  [[nodiscard]] static Cell zeros(CellKind kind, std::size_t symbols, std::size_t width);

  /// W, U and b of a map.
  ///
  /// Requires  map < maps(kind)
  [[nodiscard]] std::span<double> weight(std::size_t map);
  [[nodiscard]] std::span<double> recurrent(std::size_t map);
  [[nodiscard]] std::span<double> bias(std::size_t map);

  bool operator==(const Cell&) const = default;
};

/// Throws unless there are 1 to 256 symbols, a unit or more, and as many parameters as those have.
///
/// Errors    Argument, Shape
void validate(const Cell& cell);

/// The state of a cell between letters; c only for an lstm.
struct State {
  std::vector<double> hidden{};
  std::vector<double> cell{};
};

[[nodiscard]] State initial(const Cell& cell);

/// Reads one letter.
///
/// Requires  symbol < cell.symbols, a cell that is valid and a state of it
///
/// Accuracy  a step is within 2^-50 (width + 8) of the formulas, relative to the largest of |c| and the sums
///           of magnitudes of a map's terms (test: Cell.FollowsItsFormulas); the bits do not depend on the
///           machine, since its exp and tanh are not used (test: Train.GivesTheSameBitsEverywhere)
void advance(const Cell& cell, std::uint8_t symbol, State& state);

/// The values of one quantity in every unit after every letter.
struct Signal {
  std::string_view name;         ///< h, c or a gate
  std::vector<double> values{};  ///< (steps, width)
};

/// All internal values of a cell: h, then c of an lstm, then the gates.
struct Trace {
  std::size_t steps = 0;
  std::size_t width = 0;
  std::vector<Signal> signals{};

  /// The values of that name.
  ///
  /// Requires  the trace has that name
  [[nodiscard]] std::span<const double> of(std::string_view name) const;
};

/// Reads a word and records all values.
///
/// Errors    Argument, Shape: see `validate`; Argument for a letter beyond the cell's symbols
///
/// Cost      O(width²) a letter
[[nodiscard]] Trace trace(const Cell& cell, WordView word);

/// The cell with all parameters multiplied by `factor`; its gates saturate as the factor grows.
[[nodiscard]] Cell scaled(Cell cell, double factor);

}  // namespace normscope::nets::rnn
