#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/language.hpp>

/// Prefix tagging: for every letter of a word over a, b, whether the prefix up to it is in a language.
namespace normscope::lab::counting {

using nets::rnn::Word;
using nets::rnn::WordView;

/// Source    [Merrill et al. 2020, section 5]
enum class Tagging : std::uint8_t {
  near_balance,     ///< L5: |#a − #b| < 5
  prefix,           ///< a^n b^n Σ*, n > 0, as the paper defines it
  prefix_as_coded,  ///< a^n b^n a Σ*, n > 0, as labelled by the authors' program
};

[[nodiscard]] std::string_view to_string(Tagging tagging);
/// Errors    Argument if there is none of that name
[[nodiscard]] Tagging tagging(std::string_view name);

/// Uniformly random letters; for the prefix languages every second word begins with a^n b^n, n uniform in
/// 0..length/2, as in the authors' program (the paper has 32 for every length).
[[nodiscard]] Word draw(Tagging tagging, std::size_t length, Random& random);

/// 1 where the prefix is in the language.
///
/// Shapes    (word.size())
[[nodiscard]] std::vector<std::uint8_t> labels(Tagging tagging, WordView word);

/// The exact fraction of labels of words of `draw` that are 1, which is the accuracy of always answering yes.
///
/// Accuracy  to rounding (test: Tagging.SharesAreThoseOfDraws)
[[nodiscard]] double positive_share(Tagging tagging, std::size_t length);

/// The accuracy of always giving the more frequent answer at this length.
[[nodiscard]] double majority(Tagging tagging, std::size_t length);

}  // namespace normscope::lab::counting
