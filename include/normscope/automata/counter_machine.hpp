#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <normscope/automata/language.hpp>
#include <normscope/automata/weighted.hpp>

/// Real-time counter machines: finite control, k integers, one move a letter.
namespace normscope::automata {

/// What happens to a counter: c' + add, or add where it is not kept. ×0 is {false, 0}.
struct Update {
  bool keep = true;
  std::int64_t add = 0;

  bool operator==(const Update&) const = default;
};

/// A letter, a state, and of every counter whether it is 0, decide over the next state and the updates:
///   q = δ(x, q', [c' = 0]),  c = u(x, q', [c' = 0])(c')
/// Source    [Fischer, Meyer, Rosenberg 1968]; [Merrill et al. 2020, definition of a general CM]
class CounterMachine {
 public:
  /// A machine that stays where it is. At most 16 counters.
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

  /// The move for a letter in a state; bit k of `zeros` says that counter k is 0.
  struct Move {
    std::size_t next;
    std::span<const Update> updates;  ///< (counters)
  };
  [[nodiscard]] Move move(std::size_t letter, std::size_t state, std::size_t zeros) const;
  /// Requires  updates.size() == counters(), a next state that there is
  void set(std::size_t letter, std::size_t state, std::size_t zeros, std::size_t next,
           std::span<const Update> updates);
  /// The same whatever is 0.
  void set(std::size_t letter, std::size_t state, std::size_t next, std::span<const Update> updates);

  [[nodiscard]] Configuration start() const { return {0, std::vector<std::int64_t>(counters_)}; }
  /// Requires  letter < letters()
  void advance(std::size_t letter, Configuration& configuration) const;
  [[nodiscard]] Configuration run(WordView word) const;

  /// Restricted to (Σ × Q): no move looks at a counter.
  [[nodiscard]] bool counter_blind() const;
  /// Restricted to Σ: counter-blind with updates that do not look at the state either.
  [[nodiscard]] bool stateless() const;

  /// Distinct configurations after at most n letters, for n = 0..longest.
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

/// The weighted automaton that computes counter `counter` of a machine that is counter-blind: two copies of
/// its control, "add" and "multiply"; an update c + m, or := m, is an edge of weight m from add to multiply,
/// and whether the counter is kept, 1 or 0, the weight within multiply.
/// Source    [Merrill et al. 2020, theorems 4 and 7]; with one state, theorem 3
/// Errors    Argument where a move looks at a counter
/// Accuracy  exact (test: CounterMachine.BlindMachinesAreWeightedAutomata)
[[nodiscard]] WeightedAutomaton weighted_automaton(const CounterMachine& machine, std::size_t counter);

/// max(0, #a − #b) on a*b*: up on a, down on b unless it is 0. No weighted automaton computes it.
/// Source    [Merrill et al. 2020, figure 3 and lemma 1]
[[nodiscard]] CounterMachine clipped_difference();

/// Least n >= 1 with 2^n > |Q| (2n + 1)^k: no machine with so many states and counters tells all words of
/// n letters a, b apart, as palindromes with a marked middle ask of it.
/// Source    [Weiss, Goldberg, Yahav 2018, section 3]; the bound on configurations is ours
/// Requires  states >= 1
[[nodiscard]] std::size_t palindrome_length(std::size_t states, std::size_t counters);

/// Two words that differ in a^n b^n Σ*, n > 0 (the first is in it), and that no machine tells apart whose
/// moves look at the last `window` letters alone, whatever is done with its counters at the end: the same
/// windows occur equally often, and all of them again in the common end.
/// Source    [Merrill et al. 2020, theorem 11]
[[nodiscard]] std::pair<Word, Word> suffix_attack(std::size_t window);

}  // namespace normscope::automata
