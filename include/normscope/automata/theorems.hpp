#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <normscope/automata/counter_machine.hpp>
#include <normscope/automata/qrnn.hpp>
#include <normscope/automata/saturated.hpp>
#include <normscope/core/random.hpp>

/// Statements of [Weiss, Goldberg, Yahav 2018] and [Merrill et al. 2020] as computations: the tests and the
/// lab hold what comes out against what the papers say.
namespace normscope::automata {

/// Whether a word is taken for one of a language.
using Judge = std::function<bool(WordView)>;

/// Two judges on every word of up to so many letters.
struct Comparison {
  std::size_t words = 0;
  std::size_t differ = 0;
  Word first{};  ///< the shortest on which they differ; empty where there is none
};

/// Cost      O(letters^longest) words
[[nodiscard]] Comparison compare(const Judge& one, const Judge& other, std::size_t letters,
                                 std::size_t longest);
/// An acceptor against its language.
[[nodiscard]] Comparison compare(const Acceptor& acceptor, Language language, std::size_t longest);

/// How many an acceptor gets wrong of the member with n of every letter and its neighbours, which have one
/// more or one less of one letter. Requires  n >= 1
[[nodiscard]] std::size_t mistakes_around(const Acceptor& acceptor, Language language, std::size_t n);

/// The largest error of an lstm unit that computes max(0, i − j) on a^i b^j in the limit, its gates f and o
/// open, its other parameters `factor` times as large as its first ones, for i, j < most.
/// Source    [Merrill et al. 2020, theorem 2]
[[nodiscard]] double clipped_difference_error(double factor, std::size_t most);

/// max(0, #a − #b); no weighted automaton computes it on a*b*.
/// Source    [Merrill et al. 2020, lemma 1]
[[nodiscard]] Rational clipped_count(WordView word);
/// What is read of a stack on which a pushes and b pops: 2 − 2^(1 − m), m its height, that cannot go below 0.
/// Source    [Merrill et al. 2020, lemma 6], with the floor that definition 7 leaves out
[[nodiscard]] Rational stack_reading(WordView word);
/// (1/2)^(#a − #b) − 1, as definition 7 has it: without a floor it is rational.
[[nodiscard]] Rational stack_reading_as_printed(WordView word);
/// 0 where as many a's as b's were read, 1 elsewhere: saturated attention behind a layer norm.
/// Source    [Merrill et al. 2020, theorem 15]
[[nodiscard]] Rational attention_reading(WordView word);
/// 1/2 − 2 (#a − #b)² on a*b*, −1/2 elsewhere.
/// Source    [Merrill et al. 2020, theorem 8]
[[nodiscard]] Rational anbn_value(WordView word);

/// A machine over a, b of up to 4 states and 2 counters, counted up or down, left, or set to −1, 0 or 1.
[[nodiscard]] CounterMachine draw_machine(bool blind, Random& random);
/// Of `words` random words of up to 30 letters, on how many a counter of a blind machine is not the value of
/// its weighted automaton.
/// Source    [Merrill et al. 2020, theorems 3, 4 and 7]
[[nodiscard]] std::size_t weighted_mistakes(const CounterMachine& machine, std::size_t words, Random& random);

/// A layer that reads a, b, its parameters uniform in ±1.
[[nodiscard]] Qrnn draw_layer(std::size_t window, std::size_t width, Random& random);
/// The same of its counter machine and of the automaton of every counter, words of 1 to 20 letters.
[[nodiscard]] std::size_t machine_mistakes(const Qrnn& layer, std::size_t words, Random& random);
/// The largest |c(m − 1) − 2 c(m) + c(m + 1)| at m = n = window + 10, c after a^n b^m: once the window is
/// full of b's every c moves on a line, so that w · c + b is not positive at m = n and negative at both
/// neighbours. Source    [Merrill et al. 2020, theorem 9]
[[nodiscard]] double bend(const Qrnn& layer);
/// The largest difference of c after the two words of `suffix_attack`.
/// Source    [Merrill et al. 2020, theorem 11]
[[nodiscard]] double attack_distance(const Qrnn& layer);
/// Whether every window of so many letters occurs in both words equally often.
[[nodiscard]] bool same_windows(WordView one, WordView other, std::size_t window);

/// Distinct states of a cell in the limit after at most n letters, n = 0..longest.
/// Source    [Merrill et al. 2020, definition of space]
/// Errors    as `advance_saturated`
/// Cost      O(states · letters · width²)
[[nodiscard]] std::vector<std::size_t> space(const Cell& cell, std::size_t longest);

}  // namespace normscope::automata
