#include <normscope/nets/rnn/weighted.hpp>

#include <utility>

#include <normscope/core/error.hpp>

namespace normscope::nets::rnn {

WeightedAutomaton WeightedAutomaton::zeros(std::size_t letters, std::size_t states) {
  WeightedAutomaton automaton{.letters = letters, .states = states};
  automaton.initial.resize(states);
  automaton.transitions.resize(letters * states * states);
  automaton.final.resize(states);
  return automaton;
}

Rational& WeightedAutomaton::weight(std::size_t letter, std::size_t from, std::size_t to) {
  NORMSCOPE_ASSERT(letter < letters && from < states && to < states);
  return transitions[(letter * states + from) * states + to];
}

Rational WeightedAutomaton::value(WordView word) const {
  std::vector<Rational> now = initial;
  std::vector<Rational> next(states);
  for (const std::uint8_t letter : word) {
    NORMSCOPE_ASSERT(letter < letters);
    next.assign(states, Rational());
    for (std::size_t from = 0; from < states; ++from) {
      if (now[from].is_zero()) continue;
      for (std::size_t to = 0; to < states; ++to) {
        const Rational& edge = transitions[(letter * states + from) * states + to];
        if (!edge.is_zero()) next[to] += now[from] * edge;
      }
    }
    std::swap(now, next);
  }
  Rational sum;
  for (std::size_t state = 0; state < states; ++state) sum += now[state] * final[state];
  return sum;
}

WeightedAutomaton binary_value() {
  WeightedAutomaton automaton = WeightedAutomaton::zeros(2, 2);
  automaton.initial[0] = 1;
  automaton.final[1] = 1;
  for (std::size_t letter = 0; letter < 2; ++letter) {
    automaton.weight(letter, 0, 0) = 1;
    automaton.weight(letter, 0, 1) = static_cast<std::int64_t>(letter);
    automaton.weight(letter, 1, 1) = 2;
  }
  return automaton;
}

WeightedAutomaton anbn_series() {
  // One state per word of length 0 to 2. A row expresses, in terms of the seven, the function of the suffix
  // after the word followed by the letter.
  constexpr std::size_t states = 7;
  constexpr std::int64_t follow[2][states][states] = {{{0, 1, 0, 0, 0, 0, 0},
                                                       {0, 0, 0, 1, 0, 0, 0},
                                                       {0, 0, 0, 0, 0, 1, 0},
                                                       {1, -3, 0, 3, 0, 0, 0},
                                                       {0, 0, 0, 0, 0, 1, 0},
                                                       {0, 0, 0, 0, 0, 1, 0},
                                                       {0, 0, 0, 0, 0, 1, 0}},
                                                      {{0, 0, 1, 0, 0, 0, 0},
                                                       {0, 0, 0, 0, 1, 0, 0},
                                                       {0, 0, 0, 0, 0, 0, 1},
                                                       {0, 0, -3, 0, 3, 0, 1},
                                                       {0, 0, 1, 0, 0, 0, 0},
                                                       {0, 0, 0, 0, 0, 1, 0},
                                                       {0, 0, -3, 0, 1, 0, 3}}};
  constexpr std::int64_t twice_final[states] = {1, -3, -3, -15, 1, -1, -15};
  WeightedAutomaton automaton = WeightedAutomaton::zeros(2, states);
  automaton.initial[0] = 1;
  for (std::size_t from = 0; from < states; ++from) {
    automaton.final[from] = Rational(twice_final[from], 2);
    for (std::size_t letter = 0; letter < 2; ++letter) {
      for (std::size_t to = 0; to < states; ++to)
        automaton.weight(letter, from, to) = follow[letter][from][to];
    }
  }
  return automaton;
}

std::size_t rank(std::vector<Rational> matrix, std::size_t rows) {
  NORMSCOPE_ASSERT(rows > 0 && matrix.size() % rows == 0);
  const std::size_t columns = matrix.size() / rows;
  std::size_t found = 0;
  for (std::size_t column = 0; column < columns && found < rows; ++column) {
    std::size_t pivot = found;
    while (pivot < rows && matrix[pivot * columns + column].is_zero()) ++pivot;
    if (pivot == rows) continue;
    for (std::size_t j = 0; j < columns; ++j) {
      std::swap(matrix[pivot * columns + j], matrix[found * columns + j]);
    }
    for (std::size_t row = found + 1; row < rows; ++row) {
      if (matrix[row * columns + column].is_zero()) continue;
      const Rational factor = matrix[row * columns + column] / matrix[found * columns + column];
      for (std::size_t j = column; j < columns; ++j) {
        matrix[row * columns + j] -= factor * matrix[found * columns + j];
      }
    }
    ++found;
  }
  return found;
}

std::size_t hankel_rank(const Series& f, std::span<const Word> prefixes, std::span<const Word> suffixes) {
  if (prefixes.empty() || suffixes.empty()) return 0;
  std::vector<Rational> block;
  block.reserve(prefixes.size() * suffixes.size());
  for (const Word& prefix : prefixes) {
    for (const Word& suffix : suffixes) {
      Word word = prefix;
      word.insert(word.end(), suffix.begin(), suffix.end());
      block.push_back(f(word));
    }
  }
  return rank(std::move(block), prefixes.size());
}

std::vector<Word> all_words(std::size_t letters, std::size_t longest) {
  std::vector<Word> words;
  for (Word word; word.size() <= longest; next_word(word, letters)) words.push_back(word);
  return words;
}

std::vector<Word> powers(std::uint8_t letter, std::size_t count) {
  std::vector<Word> words;
  for (std::size_t n = 0; n < count; ++n) words.emplace_back(n, letter);
  return words;
}

}  // namespace normscope::nets::rnn
