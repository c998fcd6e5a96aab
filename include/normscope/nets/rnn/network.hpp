#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/nets/rnn/cell.hpp>
#include <normscope/nets/rnn/language.hpp>

/// A cell that reads a start symbol and then a word, with an output layer on h.
namespace normscope::nets::rnn {

/// The meaning of the outputs V h + v.
///   membership   one logit after the last letter: in the language where it is positive
///   next_symbol  softmax over the letters and the end: a word is accepted where every letter, and then the
///                end, had a probability above 0.01
///
/// Source    [Weiss, Goldberg, Yahav 2018]: membership in the paper, next_symbol in the authors' code
enum class Head : std::uint8_t { membership, next_symbol };

[[nodiscard]] std::string_view to_string(Head head);
/// The head of that name.
///
/// Errors    Argument if there is none
[[nodiscard]] Head head(std::string_view name);

/// A network for a language. Its cell's symbols are the letters and, last, the start.
struct Network {
  Language language = Language::anbn;
  Head head = Head::next_symbol;
  Cell cell{};
  std::vector<double> output{};  ///< V (outputs, width), then v (outputs)

  [[nodiscard]] std::size_t outputs() const { return head == Head::membership ? 1 : letters(language) + 1; }

  bool operator==(const Network&) const = default;
};

/// The events that the output probabilities refer to: membership, or each letter and the end of the word.
[[nodiscard]] std::vector<std::string> output_names(const Network& network);

/// Throws unless cell and output have the sizes that language and head ask for.
///
/// Errors    Argument, Shape
void validate(const Network& network);

/// Threshold of the probability of an allowed symbol.
inline constexpr double least_probability = 0.01;

/// Errors    Argument, Shape: see `validate`; Argument for a letter beyond the language's
[[nodiscard]] bool accepts(const Network& network, WordView word);

/// Probabilities after the start and after every letter: of membership, or of each letter and the end.
///
/// Shapes    (letters read + 1, outputs)
///
/// Errors    as `accepts`
[[nodiscard]] std::vector<double> probabilities(const Network& network, WordView word);

/// All internal values while it reads the start symbol and the word: word.size() + 1 steps.
///
/// Errors    as `accepts`
[[nodiscard]] Trace trace(const Network& network, WordView word);

/// Accuracy on words, which may be new to the network.
struct Score {
  std::size_t right = 0;
  std::size_t words = 0;
  double accepted_members = 0.0;  ///< share of the members
  double rejected_others = 0.0;   ///< share of the others

  [[nodiscard]] double accuracy() const { return static_cast<double>(right) / static_cast<double>(words); }
  /// Mean of the two rates: one half if all answers are equal.
  [[nodiscard]] double balanced() const { return (accepted_members + rejected_others) / 2.0; }
};

/// Errors    as `accepts`; Argument unless there are members and others
[[nodiscard]] Score score(const Network& network, std::span<const Labelled> words);

/// Whether the network accepts the members with n of every letter, n = 0..most, and words near them. These
/// have n of the first letter, 0 to n + 10 of the last one, and, where there is a letter between, n − 3 to
/// n + 3 of it. The last varies that much because a network that counts modulo a few letters accepts a word
/// every few letters.
struct Range {
  static constexpr std::size_t beyond = 10;
  static constexpr std::size_t around = 3;

  std::vector<bool> member{};    ///< accepted
  std::vector<bool> one_less{};  ///< accepted, which is wrong; false for n = 0
  std::vector<bool> one_more{};
  std::vector<bool> another{};  ///< some other wrong word is accepted

  /// Largest n such that all answers are right from `from` up to n; `from` − 1 if they are wrong there.
  ///
  /// Requires  from >= 1
  [[nodiscard]] std::size_t exact_to(std::size_t from = 5) const;
};

/// Errors    as `accepts`
///
/// Cost      O(most² width²), up to seven times that for three letters
[[nodiscard]] Range range(const Network& network, std::size_t most);

}  // namespace normscope::nets::rnn
