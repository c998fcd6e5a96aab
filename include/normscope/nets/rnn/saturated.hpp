#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <normscope/nets/rnn/cell.hpp>
#include <normscope/nets/rnn/counter_machine.hpp>

/// The limit of a cell as all its parameters grow: gates are open or closed, and tanh of an affine map is a
/// sign,
///   σ(N y) → [y > 0],  tanh(N y) → sign(y),
/// undefined where y = 0. The c of an lstm is then an integer, and the h of a gru or elman_tanh is −1, 0 or
/// 1. A rectifier does not saturate: elman_relu is used as it is, exact while its weights are integers.
///
/// Source    [Merrill et al. 2020, definition of s-M]
namespace normscope::nets::rnn {

/// Reads one letter in the limit; c and a rectifier's h are exact up to 2^53.
///
/// Requires  symbol < cell.symbols, a cell that is valid and a state of it
///
/// Errors    Argument if a map is 0, to 2^-40 of the sum of its terms' magnitudes
///
/// Accuracy  `advance` with parameters scaled by N tends to it (test: Saturated.IsTheLimitOfLargeWeights)
void advance_saturated(const Cell& cell, std::uint8_t symbol, State& state);

/// The decoder of the last state of a word: yes if  v · act(M h + m) + bias > 0, or  v · h + bias > 0 without
/// a hidden layer.
struct Decoder {
  enum class Activation : std::uint8_t { none, step, relu };

  Activation activation = Activation::none;
  std::vector<double> hidden_weight{};  ///< (units, width); none without a hidden layer
  std::vector<double> hidden_bias{};    ///< (units)
  std::vector<double> weight{};         ///< (units), (width) without a hidden layer
  double bias = 0.0;

  /// The value that is compared with 0.
  ///
  /// Shapes    hidden (width)
  [[nodiscard]] double value(std::span<const double> hidden) const;
};

/// A cell with weights set by hand, and its decoder.
struct Acceptor {
  Cell cell;
  Decoder decoder;
};

/// Whether it accepts, in the limit of `advance_saturated`.
///
/// Errors    as `advance_saturated`; Argument for a letter beyond the cell's
[[nodiscard]] bool accepts(const Acceptor& acceptor, WordView word);

/// An lstm that counts in c: c_1 = #a − #b, and for three letters c_2 = #b − #c. Further units store the last
/// letter and latch if a letter is out of order; all gates are open or closed.
///
/// Source    [Weiss, Goldberg, Yahav 2018, section 3]; the order units are ours
///
/// Accuracy  exact: every word of up to 14 letters, of 10 over three, and n of 10,000 and its neighbours
///           (test: Counters.LstmIsExactOnEveryWord, Counters.AreExactOnLongWords)
[[nodiscard]] Acceptor lstm_counter(Language language);

/// A rectifier with counters that only increase, one unit per letter, and a comparison at the end.
///
/// Source    [Weiss, Goldberg, Yahav 2018, section 3, after Chen et al. 2017]
///
/// Accuracy  exact as `lstm_counter` (test: Counters.RectifierIsExactOnEveryWord,
///           Counters.AreExactOnLongWords)
[[nodiscard]] Acceptor relu_counter(Language language);

/// An lstm for a^n b^n whose last state is decoded by a single threshold: units max(0, i − j), max(0, j − i)
/// on a^i b^j and one for "ba"; accepted if their sum is not positive.
///
/// Source    [Merrill et al. 2020, theorem 13], with its second unit corrected: as printed it counts the b's
///
/// Accuracy  exact on every word of up to 14 letters (test: Counters.OneThresholdIsEnoughForAnLstm)
[[nodiscard]] Acceptor lstm_threshold_counter();

/// An lstm for a^n b^n Σ*, n > 0, decoded by one threshold: the units of `lstm_threshold_counter` and one
/// that latches once a prefix was a member.
///
/// Source    [Merrill et al. 2020, theorem 14], corrected: as printed its last unit looks one letter back and
///           is triggered by the empty prefix
///
/// Accuracy  exact on every word of up to 13 letters (test: Counters.AnLstmReadsAPrefix)
[[nodiscard]] Acceptor lstm_prefix_counter();

// Quasi-recurrent layers in their saturated limit. Gates depend on the last `window` inputs and not on the
// state, so a layer is a counter machine without zero tests.

/// z = sign(W_z ∗ x + b_z), f, i, o = [W ∗ x + b > 0], ∗ over the last `window` inputs, 0 before the first:
///   c = f ∘ c' + i ∘ z,  h = o ∘ c
///
/// Source    [Merrill et al. 2020, definition of an ifo-QRNN]
struct Qrnn {
  enum Map : std::size_t { candidate, forget, input, output };

  std::size_t window = 1;
  std::size_t inputs = 0;
  std::size_t width = 0;
  std::vector<double>
      parameters{};  ///< for each map W (width, window, inputs), the newest input first; then b (width)

  /// All parameters 0.
  [[nodiscard]] static Qrnn zeros(std::size_t window, std::size_t inputs, std::size_t width);
  /// Weight of the input `back` steps ago.
  ///
  /// Requires  back < window
  [[nodiscard]] double& weight(Map map, std::size_t unit, std::size_t back, std::size_t from);
  [[nodiscard]] double& bias(Map map, std::size_t unit);
};

/// c and h after every input, (steps, width); integers if the layer reads letters.
struct QrnnStates {
  std::vector<double> cell{};
  std::vector<double> hidden{};
};

/// Shapes    x (steps, inputs)
///
/// Errors    Argument if a map is 0, to 2^-40 of the sum of its terms' magnitudes, where the limit is
///           undefined
[[nodiscard]] QrnnStates saturated(const Qrnn& layer, std::span<const double> x);

/// c after the last letter of a word; 0 for the empty word.
///
/// Shapes    result (layer.width)
///
/// Errors    as `saturated`
[[nodiscard]] std::vector<double> last_cell(const Qrnn& layer, WordView word);

/// One-hot rows of letters.
///
/// Shapes    result (word.size(), letters)
[[nodiscard]] std::vector<double> one_hot(WordView word, std::size_t letters);

/// The counter machine of a layer that reads letters: its states are the last window − 1 letters, its
/// counters c.
///
/// Source    [Merrill et al. 2020, section 3: a saturated QRNN is a Σ^w-restricted counter machine]
///
/// Errors    as `saturated`
///
/// Accuracy  exact (test: Qrnn.LayersAreMachines)
[[nodiscard]] CounterMachine counter_machine(const Qrnn& layer);

/// Counts #a − #b and the occurrences of "ba": both are 0 exactly on a^n b^n.
///
/// Source    [Merrill et al. 2020, theorem 10]
///
/// Accuracy  exact on every word of up to 13 letters (test: Qrnn.TwoLayersOfThresholdsReadAnBn)
[[nodiscard]] Qrnn anbn_layer();
/// The answer of two layers of thresholds on the last c: yes if none of c_1 > 0, c_1 < 0 and c_2 > 0 holds.
[[nodiscard]] bool accepts_anbn(const Qrnn& layer, WordView word);

/// Two layers whose last c, of one unit, is at most 0 exactly on a^n b^n Σ*, n > 0, and the empty word.
///
/// Source    [Merrill et al. 2020, theorem 12], with e = 1 for words that begin with b
///
/// Accuracy  exact on every word of up to 13 letters (test: Qrnn.TwoLayersReadAPrefix)
struct PrefixLayers {
  Qrnn first;
  Qrnn second;
};
[[nodiscard]] PrefixLayers prefix_layers();
/// The answer of one threshold on the last c of the second layer.
[[nodiscard]] bool accepts_prefix(const PrefixLayers& layers, WordView word);

}  // namespace normscope::nets::rnn
