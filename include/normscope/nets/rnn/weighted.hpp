#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <normscope/core/exact.hpp>
#include <normscope/nets/rnn/language.hpp>

/// Weighted automata over the rationals, and Hankel matrices, which decide what they can compute.
namespace normscope::nets::rnn {

/// A[x] = λᵀ T_{x1} … T_{xn} ρ.
///
/// Source    [Merrill et al. 2020, definition of a WFA]
struct WeightedAutomaton {
  std::size_t letters = 0;
  std::size_t states = 0;
  std::vector<Rational> initial{};  ///< λ
  std::vector<Rational>
      transitions{};  ///< T (letters, states, states); a row has the weights of edges that leave a state
  std::vector<Rational> final{};  ///< ρ

  /// All weights 0.
  [[nodiscard]] static WeightedAutomaton zeros(std::size_t letters, std::size_t states);
  /// Weight from one state to another.
  [[nodiscard]] Rational& weight(std::size_t letter, std::size_t from, std::size_t to);
  /// Requires  every letter below `letters`
  ///
  /// Errors    Argument if a value does not fit a `Rational`
  ///
  /// Cost      O(states²) per letter
  [[nodiscard]] Rational value(WordView word) const;
};

/// The value of a word over a, b as a binary number with a as the digit 0: two states compute a function that
/// grows like 2^n, which no saturated network computes.
///
/// Source    [Merrill et al. 2020, figure 5]
///
/// Accuracy  exact up to 126 letters (test: Weighted.ReadsBinaryNumbers)
[[nodiscard]] WeightedAutomaton binary_value();

/// 1/2 − 2 (#a − #b)² on a*b*, −1/2 elsewhere: positive exactly on a^n b^n. Seven states, the fewest.
///
/// Source    [Merrill et al. 2020, theorem 8]; the weights are ours
///
/// Accuracy  exact (test: Weighted.RecognizesAnBn)
[[nodiscard]] WeightedAutomaton anbn_series();

/// A function of words.
using Series = std::function<Rational(WordView)>;

/// Rank of a matrix, by Gaussian elimination over the rationals.
///
/// Shapes    matrix (rows, columns)
///
/// Errors    Argument if a fraction does not fit
///
/// Cost      O(rows · columns · rank)
[[nodiscard]] std::size_t rank(std::vector<Rational> matrix, std::size_t rows);

/// Rank of the block H[u, v] = f(uv) of a function's Hankel matrix. A weighted automaton with k states
/// computes f only if no block has rank above k; if the rank of blocks is unbounded, no weighted automaton
/// computes f.
///
/// Source    [Carlyle, Paz 1971], [Fliess 1974]: theorem 1 in [Merrill et al. 2020]
///
/// Errors    as `rank`
[[nodiscard]] std::size_t hankel_rank(const Series& f, std::span<const Word> prefixes,
                                      std::span<const Word> suffixes);

/// Every word of up to `longest` letters.
[[nodiscard]] std::vector<Word> all_words(std::size_t letters, std::size_t longest);
/// letter^0, …, letter^{count − 1}.
[[nodiscard]] std::vector<Word> powers(std::uint8_t letter, std::size_t count);

}  // namespace normscope::nets::rnn
