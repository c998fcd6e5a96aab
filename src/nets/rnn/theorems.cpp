#include <normscope/nets/rnn/theorems.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <normscope/core/error.hpp>

namespace normscope::nets::rnn {
namespace {

std::int64_t count(WordView word, std::uint8_t letter) {
  return static_cast<std::int64_t>(std::count(word.begin(), word.end(), letter));
}

std::int64_t height(WordView word) { return std::max<std::int64_t>(0, count(word, 0) - count(word, 1)); }

Word draw_word(std::size_t length, Random& random) {
  Word word(length);
  for (std::uint8_t& letter : word) letter = static_cast<std::uint8_t>(random.below(2));
  return word;
}

/// The largest |Σ weight · c| over the units; `terms` has pairs of a weight and the c's of all units.
double largest(std::initializer_list<std::pair<double, std::vector<double>>> terms) {
  std::vector<double> sum(terms.begin()->second.size(), 0.0);
  for (const auto& [weight, values] : terms) {
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += weight * values[k];
  }
  double most = 0.0;
  for (const double value : sum) most = std::max(most, std::abs(value));
  return most;
}

constexpr std::array classes{
    EncoderClass{
        "finite-state", "Finite state", Space::constant, true,
        "saturated Elman network (tanh), saturated GRU, CNN",
        "Everything inside stays in a fixed, finite set of states, so a finite automaton does the same.",
        "the parity of the a's, for a network with feedback", "Merrill et al. 2020, theorem 5",
        "Saturated.StatesAreIntegers"},
    EncoderClass{"counter-blind", "Counts, cannot look", Space::logarithmic, true,
                 "saturated QRNN, counter machine without zero tests, unigram rational network",
                 "It adds up, but what it adds next never depends on where a counter stands.",
                 "#a - #b, which no finite set of states holds", "Merrill et al. 2020, theorems 3, 4 and 7",
                 "CounterMachine.BlindMachinesAreWeightedAutomata"},
    EncoderClass{"counter-aware", "Counts and looks", Space::logarithmic, false,
                 "saturated LSTM, counter machine, saturated attention",
                 "It counts, and what it does next may depend on whether a counter stands at zero.",
                 "max(0, #a - #b) on words a...ab...b", "Merrill et al. 2020, theorems 2, 15 and 16",
                 "Hankel.CountersThatStopAtZeroAreNotRational"},
    EncoderClass{"rational-complete", "Every rational series", Space::linear, true,
                 "weighted automata side by side",
                 "It can give each word a state of its own, as long as a weighted automaton computes it.",
                 "the value of a binary number, which grows like 2^n", "Merrill et al. 2020, theorem 6",
                 "Weighted.ReadsBinaryNumbers"},
    EncoderClass{"memory", "Unbounded memory", Space::linear, false, "network with a stack",
                 "It remembers whole words, and computes more than any weighted automaton from them.",
                 "what the height of a stack stands for, which stops at empty",
                 "Merrill et al. 2020, lemmas 5 and 6", "Hankel.CountersThatStopAtZeroAreNotRational"},
};

constexpr std::array table{
    Standing{"weighted automaton", "one threshold", "a^n b^n", true, "Merrill et al. 2020, theorem 8",
             "Weighted.RecognizesAnBn"},
    Standing{"LSTM", "one threshold", "a^n b^n", true, "Merrill et al. 2020, theorem 13",
             "Counters.OneThresholdIsEnoughForAnLstm"},
    Standing{"QRNN", "one threshold", "a^n b^n", false, "Merrill et al. 2020, theorem 9",
             "Qrnn.OneThresholdDoesNotReadAnBn"},
    Standing{"QRNN", "two layers of thresholds", "a^n b^n", true, "Merrill et al. 2020, theorem 10",
             "Qrnn.TwoLayersOfThresholdsReadAnBn"},
    Standing{"LSTM", "one threshold", "a^n b^n and anything after, n > 0", true,
             "Merrill et al. 2020, theorem 14", "Counters.AnLstmReadsAPrefix"},
    Standing{"QRNN", "any", "a^n b^n and anything after, n > 0", false, "Merrill et al. 2020, theorem 11",
             "Qrnn.CannotDistinguishTheWordsOfTheSuffixAttack"},
    Standing{"two QRNN layers", "one threshold", "a^n b^n and anything after, n > 0, and the empty word",
             true, "Merrill et al. 2020, theorem 12", "Qrnn.TwoLayersReadAPrefix"},
    Standing{"LSTM", "two layers of thresholds", "a^n b^n", true, "Weiss et al. 2018, section 3",
             "Counters.LstmIsExactOnEveryWord"},
    Standing{"LSTM", "two layers of thresholds", "a^n b^n c^n", true, "Weiss et al. 2018, section 3",
             "Counters.LstmIsExactOnEveryWord"},
    Standing{"Elman network (ReLU)", "a hidden layer of rectifiers", "a^n b^n", true,
             "Weiss et al. 2018, section 3", "Counters.RectifierIsExactOnEveryWord"},
    Standing{"Elman network (ReLU)", "a hidden layer of rectifiers", "a^n b^n c^n", true,
             "Weiss et al. 2018, section 3", "Counters.RectifierIsExactOnEveryWord"},
    Standing{"GRU", "any, states of finite precision", "a^n b^n", false, "Weiss et al. 2018, section 3",
             "Cell.BoundedCellsStayBounded"},
    Standing{"Elman network (tanh)", "any, states of finite precision", "a^n b^n", false,
             "Weiss et al. 2018, section 3", "Cell.BoundedCellsStayBounded"},
};

constexpr std::array proper_inclusions{
    Order{"LSTM", "GRU", "c grows without bound, a GRU's state stays within -1 and 1",
          "Weiss et al. 2018, section 3"},
    Order{"LSTM", "Elman network (tanh)", "the same; with its gates held open or shut it is one",
          "Weiss et al. 2018, section 3"},
    Order{"Elman network (ReLU)", "Elman network (tanh)", "a rectifier grows without bound, tanh does not",
          "Weiss et al. 2018, section 3"},
    Order{"Elman network (ReLU)", "GRU", "a rectifier grows without bound, a GRU's state does not",
          "Weiss et al. 2018, section 3"},
    Order{"saturated LSTM", "saturated QRNN", "its gates see its counters", "Merrill et al. 2020, figure 1"},
    Order{"two QRNN layers", "QRNN", "the second layer sees the first one's counters",
          "Merrill et al. 2020, theorem 12"},
};

}  // namespace

Comparison compare(const Judge& one, const Judge& other, std::size_t letters, std::size_t longest) {
  Comparison comparison;
  for (Word word; word.size() <= longest; next_word(word, letters)) {
    ++comparison.words;
    if (one(word) == other(word)) continue;
    if (comparison.differ++ == 0) comparison.first = word;
  }
  return comparison;
}

Comparison compare(const Acceptor& acceptor, Language language, std::size_t longest) {
  return compare([&](WordView word) { return accepts(acceptor, word); },
                 [&](WordView word) { return contains(language, word); }, letters(language), longest);
}

std::size_t mistakes_around(const Acceptor& acceptor, Language language, std::size_t n) {
  NORMSCOPE_ASSERT(n >= 1);
  std::size_t mistakes = accepts(acceptor, member(language, n)) ? 0 : 1;
  std::vector<std::size_t> counts(letters(language), n);
  for (std::size_t& of_letter : counts) {
    for (const std::size_t other : {n - 1, n + 1}) {
      of_letter = other;
      mistakes += accepts(acceptor, blocks(counts)) ? 1 : 0;
    }
    of_letter = n;
  }
  return mistakes;
}

double clipped_difference_error(double factor, std::size_t most) {
  // i sees 10 h − 2 [b] + 1, which closes it for b at 0; g increments on a and decrements on b.
  Cell cell = Cell::zeros(CellKind::lstm, 2, 1);
  cell.weight(0)[1] = -2.0;
  cell.recurrent(0)[0] = 10.0;
  cell.bias(0)[0] = 1.0;
  cell.weight(3)[0] = 1.0;
  cell.weight(3)[1] = -1.0;
  cell = scaled(cell, factor);
  // f = o = 1, as in the theorem, instead of its limit.
  cell.bias(1)[0] = 40.0;
  cell.bias(2)[0] = 40.0;
  double worst = 0.0;
  for (std::size_t i = 0; i < most; ++i) {
    for (std::size_t j = 0; j < most; ++j) {
      State state = initial(cell);
      for (const std::uint8_t letter : blocks(std::array{i, j})) advance(cell, letter, state);
      const double exact = i > j ? static_cast<double>(i - j) : 0.0;
      worst = std::max(worst, std::abs(state.cell[0] - exact));
    }
  }
  return worst;
}

Rational clipped_count(WordView word) { return height(word); }

Rational stack_reading(WordView word) {
  Rational half(1);
  for (std::int64_t m = height(word); m > 0; --m) half *= Rational(1, 2);
  return Rational(2) - 2 * half;
}

Rational stack_reading_as_printed(WordView word) {
  Rational value(1);
  for (const std::uint8_t letter : word) value *= letter == 0 ? Rational(1, 2) : Rational(2);
  return value - 1;
}

Rational attention_reading(WordView word) { return count(word, 0) == count(word, 1) ? 0 : 1; }

Rational anbn_value(WordView word) {
  if (!std::is_sorted(word.begin(), word.end())) return {-1, 2};
  const std::int64_t apart = count(word, 0) - count(word, 1);
  return Rational(1, 2) - 2 * apart * apart;
}

CounterMachine draw_machine(bool blind, Random& random) {
  constexpr std::array<Update, 6> operations{Update{true, 1},  Update{true, 0},  Update{true, -1},
                                             Update{false, 0}, Update{false, 1}, Update{false, -1}};
  const std::size_t states = 1 + random.below(4);
  const std::size_t counters = 1 + random.below(2);
  CounterMachine machine(2, states, counters);
  for (std::size_t letter = 0; letter < 2; ++letter) {
    for (std::size_t state = 0; state < states; ++state) {
      for (std::size_t zeros = 0; zeros < std::size_t{1} << counters; ++zeros) {
        std::vector<Update> updates;
        for (std::size_t k = 0; k < counters; ++k) updates.push_back(operations[random.below(6)]);
        const std::size_t next = random.below(states);
        if (blind) {
          machine.set(letter, state, next, updates);
        } else {
          machine.set(letter, state, zeros, next, updates);
        }
      }
    }
  }
  return machine;
}

std::size_t weighted_mistakes(const CounterMachine& machine, std::size_t words, Random& random) {
  std::size_t mistakes = 0;
  for (std::size_t k = 0; k < machine.counters(); ++k) {
    const WeightedAutomaton automaton = weighted_automaton(machine, k);
    for (std::size_t i = 0; i < words; ++i) {
      const Word word = draw_word(random.below(31), random);
      mistakes += automaton.value(word) == Rational(machine.run(word).counters[k]) ? 0 : 1;
    }
  }
  return mistakes;
}

Qrnn draw_layer(std::size_t window, std::size_t width, Random& random) {
  Qrnn layer = Qrnn::zeros(window, 2, width);
  for (double& parameter : layer.parameters) parameter = 2.0 * random.uniform() - 1.0;
  return layer;
}

std::size_t machine_mistakes(const Qrnn& layer, std::size_t words, Random& random) {
  const CounterMachine machine = counter_machine(layer);
  std::vector<WeightedAutomaton> automata;
  for (std::size_t k = 0; k < layer.width; ++k) automata.push_back(weighted_automaton(machine, k));
  std::size_t mistakes = 0;
  for (std::size_t i = 0; i < words; ++i) {
    const Word word = draw_word(1 + random.below(20), random);
    const std::vector<double> c = last_cell(layer, word);
    const std::vector<std::int64_t> counters = machine.run(word).counters;
    for (std::size_t k = 0; k < layer.width; ++k) {
      const bool same =
          c[k] == static_cast<double>(counters[k]) && automata[k].value(word) == Rational(counters[k]);
      mistakes += same ? 0 : 1;
    }
  }
  return mistakes;
}

double bend(const Qrnn& layer) {
  const std::size_t n = layer.window + 10;
  const auto c = [&](std::size_t m) { return last_cell(layer, blocks(std::array{n, m})); };
  return largest({{1.0, c(n - 1)}, {-2.0, c(n)}, {1.0, c(n + 1)}});
}

double attack_distance(const Qrnn& layer) {
  const auto [in, out] = suffix_attack(layer.window);
  return largest({{1.0, last_cell(layer, in)}, {-1.0, last_cell(layer, out)}});
}

bool same_windows(WordView one, WordView other, std::size_t window) {
  std::map<std::string, std::ptrdiff_t> balance;
  const auto add = [&](WordView word, std::ptrdiff_t each) {
    for (std::size_t at = 0; at + window <= word.size(); ++at) {
      balance[text(word.subspan(at, window))] += each;
    }
  };
  add(one, 1);
  add(other, -1);
  return std::all_of(balance.begin(), balance.end(), [](const auto& entry) { return entry.second == 0; });
}

std::vector<std::size_t> space(const Cell& cell, std::size_t longest) {
  using Key = std::pair<std::vector<double>, std::vector<double>>;
  const State start = initial(cell);
  std::set<Key> seen{{start.hidden, start.cell}};
  std::vector<Key> newest(seen.begin(), seen.end());
  std::vector<std::size_t> counts{1};
  for (std::size_t n = 0; n < longest; ++n) {
    std::vector<Key> found;
    for (const Key& key : newest) {
      for (std::size_t letter = 0; letter < cell.symbols; ++letter) {
        State state{key.first, key.second};
        advance_saturated(cell, static_cast<std::uint8_t>(letter), state);
        const auto [place, added] = seen.emplace(std::move(state.hidden), std::move(state.cell));
        if (added) found.push_back(*place);
      }
    }
    newest = std::move(found);
    counts.push_back(seen.size());
  }
  return counts;
}

std::string_view to_string(Space space) {
  switch (space) {
    case Space::constant: return "constant";
    case Space::logarithmic: return "logarithmic";
    case Space::linear: break;
  }
  return "linear";
}

std::span<const EncoderClass> encoder_classes() { return classes; }
std::span<const Standing> standings() { return table; }
std::span<const Order> orders() { return proper_inclusions; }

}  // namespace normscope::nets::rnn
