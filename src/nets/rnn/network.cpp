#include <normscope/nets/rnn/network.hpp>

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "pass.hpp"

namespace normscope::nets::rnn {
namespace {

void expect_letters(const Network& network, WordView word) {
  for (const std::uint8_t letter : word) {
    if (letter >= letters(network.language)) {
      throw Error(ErrorCode::Argument, fmt::format("network: letter {} of the word, expected less than {}",
                                                   letter, letters(network.language)));
    }
  }
}

std::uint8_t start(const Network& network) { return static_cast<std::uint8_t>(letters(network.language)); }

/// Output probabilities after the letters read so far.
void read_out(const Network& network, const detail::Runner& runner, double* out) {
  const std::size_t outputs = network.outputs();
  detail::outputs<1>(network.cell.width, outputs, network.output.data(), runner.state.hidden.data(), out);
  if (network.head == Head::membership) {
    out[0] = logistic(out[0]);
  } else {
    detail::softmax<1>(outputs, out);
  }
}

/// A network that reads a word, and whether it accepts what it has read.
class Classifier {
 public:
  explicit Classifier(const Network& network) : network_(network), runner_(network.cell) {
    runner_.read(start(network));
    read_out(network_, runner_, out_.data());
  }

  void read(std::uint8_t letter) {
    possible_ = possible_ && (network_.head == Head::membership || out_[letter] > least_probability);
    runner_.read(letter);
    read_out(network_, runner_, out_.data());
  }
  [[nodiscard]] bool accepts() const {
    if (network_.head == Head::membership) return out_[0] > 0.5;
    return possible_ && out_[letters(network_.language)] > least_probability;
  }

 private:
  const Network& network_;
  detail::Runner runner_;
  std::array<double, 4> out_{};
  bool possible_ = true;  ///< no letter so far was improbable
};

bool read(const Network& network, WordView word) {
  Classifier judge(network);
  for (const std::uint8_t letter : word) judge.read(letter);
  return judge.accepts();
}

}  // namespace

std::string_view to_string(Head head) { return head == Head::membership ? "membership" : "next_symbol"; }

Head head(std::string_view name) {
  for (const Head value : {Head::membership, Head::next_symbol}) {
    if (to_string(value) == name) return value;
  }
  throw Error(ErrorCode::Argument,
              fmt::format("unknown head \"{}\", expected membership or next_symbol", name));
}

void validate(const Network& network) {
  validate(network.cell);
  const std::size_t symbols = letters(network.language) + 1;
  if (network.cell.symbols != symbols) {
    throw Error(ErrorCode::Shape, fmt::format("network for {} with {} symbols, expected {}",
                                              to_string(network.language), network.cell.symbols, symbols));
  }
  const std::size_t expected = network.outputs() * (network.cell.width + 1);
  if (network.output.size() != expected) {
    throw Error(ErrorCode::Shape, fmt::format("network with {} output parameters, expected {}",
                                              network.output.size(), expected));
  }
}

bool accepts(const Network& network, WordView word) {
  validate(network);
  expect_letters(network, word);
  return read(network, word);
}

std::vector<double> probabilities(const Network& network, WordView word) {
  validate(network);
  expect_letters(network, word);
  detail::Runner runner(network.cell);
  const std::size_t outputs = network.outputs();
  std::vector<double> all((word.size() + 1) * outputs);
  runner.read(start(network));
  read_out(network, runner, all.data());
  for (std::size_t at = 0; at < word.size(); ++at) {
    runner.read(word[at]);
    read_out(network, runner, all.data() + (at + 1) * outputs);
  }
  return all;
}

Trace trace(const Network& network, WordView word) {
  validate(network);
  expect_letters(network, word);
  Word read{start(network)};
  read.insert(read.end(), word.begin(), word.end());
  return trace(network.cell, read);
}

Score score(const Network& network, std::span<const Labelled> words) {
  validate(network);
  std::size_t members = 0;
  std::size_t accepted_members = 0;
  std::size_t rejected_others = 0;
  for (const Labelled& one : words) {
    expect_letters(network, one.word);
    const bool accepted = read(network, one.word);
    if (one.member) ++members;
    if (one.member && accepted) ++accepted_members;
    if (!one.member && !accepted) ++rejected_others;
  }
  const std::size_t others = words.size() - members;
  if (members == 0 || others == 0) {
    throw Error(ErrorCode::Argument,
                fmt::format("score: {} members and {} other words, expected both", members, others));
  }
  return {accepted_members + rejected_others, words.size(),
          static_cast<double>(accepted_members) / static_cast<double>(members),
          static_cast<double>(rejected_others) / static_cast<double>(others)};
}

std::size_t Range::exact_to(std::size_t from) const {
  NORMSCOPE_ASSERT(from >= 1);
  std::size_t n = from;
  while (n < member.size() && member[n] && !another[n]) ++n;
  return n - 1;
}

namespace {

/// Whether the network accepts a^n, the letters between as often as `middle` says, and 0 to `most` of the
/// last letter.
std::vector<bool> accepted_ends(const Network& network, std::size_t n, std::size_t middle, std::size_t most) {
  const auto last = static_cast<std::uint8_t>(letters(network.language) - 1);
  Classifier judge(network);
  for (std::uint8_t letter = 0; letter < last; ++letter) {
    for (std::size_t i = 0; i < (letter == 0 ? n : middle); ++i) judge.read(letter);
  }
  std::vector<bool> accepted{judge.accepts()};
  for (std::size_t count = 1; count <= most; ++count) {
    judge.read(last);
    accepted.push_back(judge.accepts());
  }
  return accepted;
}

bool any_of(const std::vector<bool>& values) {
  return std::find(values.begin(), values.end(), true) != values.end();
}

}  // namespace

Range range(const Network& network, std::size_t most) {
  validate(network);
  Range range;
  for (std::size_t n = 0; n <= most; ++n) {
    std::vector<bool> accepted = accepted_ends(network, n, n, n + Range::beyond);
    range.member.push_back(accepted[n]);
    range.one_less.push_back(n > 0 && accepted[n - 1]);
    range.one_more.push_back(accepted[n + 1]);
    accepted[n] = false;
    bool another = any_of(accepted);
    const bool has_middle = letters(network.language) > 2;
    for (std::size_t off = 1; has_middle && off <= Range::around && !another; ++off) {
      another = any_of(accepted_ends(network, n, n + off, n + Range::beyond)) ||
                (off <= n && any_of(accepted_ends(network, n, n - off, n + Range::beyond)));
    }
    range.another.push_back(another);
  }
  return range;
}

std::vector<std::string> output_names(const Network& network) {
  if (network.head == Head::membership) return {"in the language"};
  std::vector<std::string> names;
  for (std::size_t letter = 0; letter < letters(network.language); ++letter) {
    names.push_back(text(Word{static_cast<std::uint8_t>(letter)}));
  }
  names.emplace_back("end");
  return names;
}

}  // namespace normscope::nets::rnn
