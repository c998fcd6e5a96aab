#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <normscope/nets/rnn/language.hpp>
#include <normscope/nets/rnn/weighted.hpp>

/// Real-time counter machines: finite control, k integer counters, one move per letter.
namespace normscope::nets::rnn {

/// The update of a counter: c' + add, or add if it is not kept. ×0 is {false, 0}.
struct Update {
  bool keep = true;
  std::int64_t add = 0;

  bool operator==(const Update&) const = default;
};

/// The letter, the state, and for every counter whether it is 0 determine the next state and the updates:
///   q = δ(x, q', [c' = 0]),  c = u(x, q', [c' = 0])(c')
///
/// Source    [Fischer, Meyer, Rosenberg 1968]; [Merrill et al. 2020, definition of a general CM]
class CounterMachine {
 public:
  /// A machine that never changes its state. At most 16 counters.
  ///
  /// Errors    Argument for no letters, no states, or more counters
  CounterMachine(std::size_t letters, std::size_t states, std::size_t counters);

  struct Configuration {
    std::size_t state = 0;
    std::vector<std::int64_t> counters{};

    bool operator==(const Configuration&) const = default;
  };

  [[nodiscard]] std::size_t letters() const { return letters_; }
  [[nodiscard]] std::size_t states() const { return states_; }
  [[nodiscard]] std::size_t counters() const { return counters_; }

  /// The move for a letter in a state; bit k of `zeros` is set if counter k is 0.
  struct Move {
    std::size_t next;
    std::span<const Update> updates;  ///< (counters)
  };
  [[nodiscard]] Move move(std::size_t letter, std::size_t state, std::size_t zeros) const;
  /// Requires  updates.size() == counters(), an existing next state
  void set(std::size_t letter, std::size_t state, std::size_t zeros, std::size_t next,
           std::span<const Update> updates);
  /// Sets the transition for every value of `zeros`.
  void set(std::size_t letter, std::size_t state, std::size_t next, std::span<const Update> updates);

  [[nodiscard]] Configuration start() const { return {0, std::vector<std::int64_t>(counters_)}; }
  /// Requires  letter < letters()
  void advance(std::size_t letter, Configuration& configuration) const;
  [[nodiscard]] Configuration run(WordView word) const;

  /// Restricted to (Σ × Q): no move depends on a counter.
  [[nodiscard]] bool counter_blind() const;
  /// Restricted to Σ: counter-blind, with updates that do not depend on the state either.
  [[nodiscard]] bool stateless() const;

  /// Distinct configurations after at most n letters, for n = 0..longest.
  ///
  /// Cost      O(configurations · letters)
  [[nodiscard]] std::vector<std::size_t> space(std::size_t longest) const;

 private:
  [[nodiscard]] std::size_t index(std::size_t letter, std::size_t state, std::size_t zeros) const;

  std::size_t letters_;
  std::size_t states_;
  std::size_t counters_;
  std::vector<std::size_t> next_;
  std::vector<Update> updates_;
};

/// The weighted automaton that computes counter `counter` of a counter-blind machine. It has two copies of
/// the control, "add" and "multiply". An update c + m, or := m, is an edge of weight m from add to multiply;
/// within multiply the weight is 1 if the counter is kept and 0 otherwise.
///
/// Source    [Merrill et al. 2020, theorems 4 and 7]; with one state, theorem 3
///
/// Errors    Argument if a move depends on a counter
///
/// Accuracy  exact (test: CounterMachine.BlindMachinesAreWeightedAutomata)
[[nodiscard]] WeightedAutomaton weighted_automaton(const CounterMachine& machine, std::size_t counter);

/// max(0, #a − #b) on a*b*: incremented on a, decremented on b unless it is 0. No weighted automaton computes
/// it.
///
/// Source    [Merrill et al. 2020, figure 3 and lemma 1]
[[nodiscard]] CounterMachine clipped_difference();

/// The smallest n >= 1 with 2^n > |Q| (2n + 1)^k: no machine with this many states and counters distinguishes
/// all words of n letters a, b, which recognizing palindromes with a marked middle requires.
///
/// Source    [Weiss, Goldberg, Yahav 2018, section 3]; the bound on configurations is ours
///
/// Requires  states >= 1
[[nodiscard]] std::size_t palindrome_length(std::size_t states, std::size_t counters);

/// Two words, of which only the first is in a^n b^n Σ*, n > 0, and which no machine distinguishes if its
/// moves depend only on the last `window` letters, for any function of its final counters: the same windows
/// occur equally often in both, and again in their common suffix.
///
/// Source    [Merrill et al. 2020, theorem 11]
[[nodiscard]] std::pair<Word, Word> suffix_attack(std::size_t window);

}  // namespace normscope::nets::rnn
