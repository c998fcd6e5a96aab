#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/nets/rnn/counter_machine.hpp>

/// Quasi-recurrent layers in their saturated limit. Gates depend on the last `window` inputs and not on the
/// state, so a layer is a counter machine without zero tests.
namespace normscope::nets::rnn {

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
