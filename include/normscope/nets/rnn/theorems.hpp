#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/counter_machine.hpp>
#include <normscope/nets/rnn/saturated.hpp>

/// Statements of [Weiss, Goldberg, Yahav 2018] and [Merrill et al. 2020] as computations, whose results the
/// tests and the lab compare with the papers.
namespace normscope::nets::rnn {

/// Whether a word is accepted.
using Judge = std::function<bool(WordView)>;

/// Comparison of two acceptors on every word up to a length.
struct Comparison {
  std::size_t words = 0;
  std::size_t differ = 0;
  Word first{};  ///< the shortest word on which they differ; empty if there is none
};

/// Cost      O(letters^longest) words
[[nodiscard]] Comparison compare(const Judge& one, const Judge& other, std::size_t letters,
                                 std::size_t longest);
/// Compares an acceptor with its language.
[[nodiscard]] Comparison compare(const Acceptor& acceptor, Language language, std::size_t longest);

/// The number of mistakes of an acceptor on the member with n of every letter and its neighbours, which have
/// one more or one less of one letter.
///
/// Requires  n >= 1
[[nodiscard]] std::size_t mistakes_around(const Acceptor& acceptor, Language language, std::size_t n);

/// The largest error of an lstm unit that computes max(0, i − j) on a^i b^j in the limit, with gates f and o
/// open and its other parameters multiplied by `factor`, for i, j < most.
///
/// Source    [Merrill et al. 2020, theorem 2]
[[nodiscard]] double clipped_difference_error(double factor, std::size_t most);

/// max(0, #a − #b); no weighted automaton computes it on a*b*.
///
/// Source    [Merrill et al. 2020, lemma 1]
[[nodiscard]] Rational clipped_count(WordView word);
/// The top of a stack, as a number, on which a pushes and b pops: 2 − 2^(1 − m) for height m, which cannot go
/// below 0.
///
/// Source    [Merrill et al. 2020, lemma 6], with the floor that is missing in definition 7
[[nodiscard]] Rational stack_reading(WordView word);
/// (1/2)^(#a − #b) − 1, as in definition 7; without a floor it is rational.
[[nodiscard]] Rational stack_reading_as_printed(WordView word);
/// 0 after as many a's as b's, 1 otherwise: saturated attention behind a layer norm.
///
/// Source    [Merrill et al. 2020, theorem 15]
[[nodiscard]] Rational attention_reading(WordView word);
/// 1/2 − 2 (#a − #b)² on a*b*, −1/2 elsewhere.
///
/// Source    [Merrill et al. 2020, theorem 8]
[[nodiscard]] Rational anbn_value(WordView word);

/// A random machine over a, b with up to 4 states and 2 counters, whose updates increment or decrement a
/// counter, leave it, or set it to −1, 0 or 1.
[[nodiscard]] CounterMachine draw_machine(bool blind, Random& random);
/// The number of random words, of `words` words of up to 30 letters, on which a counter of a blind machine
/// differs from its weighted automaton.
///
/// Source    [Merrill et al. 2020, theorems 3, 4 and 7]
[[nodiscard]] std::size_t weighted_mistakes(const CounterMachine& machine, std::size_t words, Random& random);

/// A layer that reads a, b, with parameters uniform in ±1.
[[nodiscard]] Qrnn draw_layer(std::size_t window, std::size_t width, Random& random);
/// Mistakes of a layer, its counter machine and the automaton of every counter, on words of 1 to 20 letters.
[[nodiscard]] std::size_t machine_mistakes(const Qrnn& layer, std::size_t words, Random& random);
/// The largest |c(m − 1) − 2 c(m) + c(m + 1)| at m = n = window + 10, for c after a^n b^m. Once the window
/// contains only b's every c is linear in m, so w · c + b cannot be positive at m = n and negative at
/// both neighbours.
///
/// Source    [Merrill et al. 2020, theorem 9]
[[nodiscard]] double bend(const Qrnn& layer);
/// The largest difference of c after the two words of `suffix_attack`.
///
/// Source    [Merrill et al. 2020, theorem 11]
[[nodiscard]] double attack_distance(const Qrnn& layer);
/// Whether every window of this many letters occurs equally often in both words.
[[nodiscard]] bool same_windows(WordView one, WordView other, std::size_t window);

/// Number of distinct states of a cell in the limit after at most n letters, n = 0..longest.
///
/// Source    [Merrill et al. 2020, definition of space]
///
/// Errors    as `advance_saturated`
///
/// Cost      O(states · letters · width²)
[[nodiscard]] std::vector<std::size_t> space(const Cell& cell, std::size_t longest);

// The formal hierarchy of recurrent architectures as data.
//
// Saturated cells (`saturated.hpp`) are compared by the number of states they can be in after n letters, and
// by whether weighted automata can compute the same functions.
//
// Source    [Merrill et al. 2020, figure 1 and section 4]; [Weiss, Goldberg, Yahav 2018]

/// 2^T(n) states after at most n letters.
enum class Space : std::uint8_t { constant, logarithmic, linear };

[[nodiscard]] std::string_view to_string(Space space);

/// One class of the map.
struct EncoderClass {
  std::string_view id;
  std::string_view name;
  Space space;
  bool rational;             ///< all its functions are rational series
  std::string_view members;  ///< architectures, separated by ", "
  std::string_view says;     ///< its meaning, in one sentence
  std::string_view
      example;  ///< a function or language in this class that is not in the classes below or beside it
  std::string_view source;
  std::string_view test;  ///< a test of ours that shows it; empty if there is none
};

/// Whether an architecture with a decoder recognizes a language.
struct Standing {
  std::string_view architecture;
  std::string_view decoder;  ///< one threshold, two layers of thresholds, or any; and what the states must be
  std::string_view language;
  bool recognizes;
  std::string_view source;
  std::string_view test;
};

/// An architecture that can do strictly more than another.
struct Order {
  std::string_view more;
  std::string_view less;
  std::string_view because;
  std::string_view source;
};

[[nodiscard]] std::span<const EncoderClass> encoder_classes();
[[nodiscard]] std::span<const Standing> standings();
[[nodiscard]] std::span<const Order> orders();

}  // namespace normscope::nets::rnn
