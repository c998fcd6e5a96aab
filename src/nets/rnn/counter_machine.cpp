#include <normscope/nets/rnn/counter_machine.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope::nets::rnn {
namespace {

constexpr std::size_t most_counters = 16;

std::size_t zeros_of(const std::vector<std::int64_t>& counters) {
  std::size_t zeros = 0;
  for (std::size_t k = 0; k < counters.size(); ++k) zeros |= static_cast<std::size_t>(counters[k] == 0) << k;
  return zeros;
}

}  // namespace

CounterMachine::CounterMachine(std::size_t letters, std::size_t states, std::size_t counters)
    : letters_(letters), states_(states), counters_(counters) {
  if (letters == 0 || states == 0 || counters > most_counters) {
    throw Error(ErrorCode::Argument,
                fmt::format("counter machine with {} letters, {} states and {} counters, expected 1 or more, "
                            "1 or more and at most {}",
                            letters, states, counters, most_counters));
  }
  for (std::size_t letter = 0; letter < letters; ++letter) {
    for (std::size_t state = 0; state < states; ++state) {
      next_.insert(next_.end(), std::size_t{1} << counters, state);
    }
  }
  updates_.resize(next_.size() * counters);
}

std::size_t CounterMachine::index(std::size_t letter, std::size_t state, std::size_t zeros) const {
  NORMSCOPE_ASSERT(letter < letters_ && state < states_ && zeros >> counters_ == 0);
  return ((letter * states_ + state) << counters_) + zeros;
}

CounterMachine::Move CounterMachine::move(std::size_t letter, std::size_t state, std::size_t zeros) const {
  const std::size_t at = index(letter, state, zeros);
  return {next_[at], std::span(updates_).subspan(at * counters_, counters_)};
}

void CounterMachine::set(std::size_t letter, std::size_t state, std::size_t zeros, std::size_t next,
                         std::span<const Update> updates) {
  NORMSCOPE_ASSERT(updates.size() == counters_ && next < states_);
  const std::size_t at = index(letter, state, zeros);
  next_[at] = next;
  std::copy(updates.begin(), updates.end(), updates_.begin() + static_cast<std::ptrdiff_t>(at * counters_));
}

void CounterMachine::set(std::size_t letter, std::size_t state, std::size_t next,
                         std::span<const Update> updates) {
  for (std::size_t zeros = 0; zeros >> counters_ == 0; ++zeros) set(letter, state, zeros, next, updates);
}

void CounterMachine::advance(std::size_t letter, Configuration& configuration) const {
  const Move now = move(letter, configuration.state, zeros_of(configuration.counters));
  configuration.state = now.next;
  for (std::size_t k = 0; k < counters_; ++k) {
    std::int64_t& counter = configuration.counters[k];
    counter = (now.updates[k].keep ? counter : 0) + now.updates[k].add;
  }
}

CounterMachine::Configuration CounterMachine::run(WordView word) const {
  Configuration now = start();
  for (const std::uint8_t letter : word) advance(letter, now);
  return now;
}

bool CounterMachine::counter_blind() const {
  for (std::size_t at = 0; at < next_.size(); ++at) {
    const std::size_t plain = at >> counters_ << counters_;
    if (next_[at] != next_[plain]) return false;
    for (std::size_t k = 0; k < counters_; ++k) {
      if (updates_[at * counters_ + k] != updates_[plain * counters_ + k]) return false;
    }
  }
  return true;
}

bool CounterMachine::stateless() const {
  if (!counter_blind()) return false;
  for (std::size_t letter = 0; letter < letters_; ++letter) {
    const std::span<const Update> first = move(letter, 0, 0).updates;
    for (std::size_t state = 1; state < states_; ++state) {
      const std::span<const Update> other = move(letter, state, 0).updates;
      if (!std::equal(first.begin(), first.end(), other.begin())) return false;
    }
  }
  return true;
}

std::vector<std::size_t> CounterMachine::space(std::size_t longest) const {
  using Key = std::pair<std::size_t, std::vector<std::int64_t>>;
  std::set<Key> seen{{0, start().counters}};
  std::vector<Key> newest(seen.begin(), seen.end());
  std::vector<std::size_t> counts{seen.size()};
  for (std::size_t n = 0; n < longest; ++n) {
    // The successors of a configuration do not depend on when it is reached, so only new ones are followed.
    std::vector<Key> found;
    for (const auto& [state, counters] : newest) {
      for (std::size_t letter = 0; letter < letters_; ++letter) {
        Configuration next{state, counters};
        advance(letter, next);
        Key key{next.state, std::move(next.counters)};
        if (seen.insert(key).second) found.push_back(std::move(key));
      }
    }
    newest = std::move(found);
    counts.push_back(seen.size());
  }
  return counts;
}

WeightedAutomaton weighted_automaton(const CounterMachine& machine, std::size_t counter) {
  NORMSCOPE_ASSERT(counter < machine.counters());
  if (!machine.counter_blind()) {
    throw Error(ErrorCode::Argument,
                "weighted automaton: the machine looks at its counters, expected one "
                "that does not");
  }
  const std::size_t copy = machine.states();
  WeightedAutomaton automaton = WeightedAutomaton::zeros(machine.letters(), 2 * copy);
  automaton.initial[0] = 1;
  for (std::size_t from = 0; from < copy; ++from) automaton.final[copy + from] = 1;
  for (std::size_t letter = 0; letter < machine.letters(); ++letter) {
    for (std::size_t from = 0; from < copy; ++from) {
      const CounterMachine::Move move = machine.move(letter, from, 0);
      automaton.weight(letter, from, move.next) = 1;
      automaton.weight(letter, from, copy + move.next) = move.updates[counter].add;
      automaton.weight(letter, copy + from, copy + move.next) = move.updates[counter].keep ? 1 : 0;
    }
  }
  return automaton;
}

CounterMachine clipped_difference() {
  CounterMachine machine(2, 1, 1);
  const std::array up{Update{true, 1}};
  const std::array down{Update{true, -1}};
  machine.set(0, 0, 0, up);
  machine.set(1, 0, 0, 0, down);
  return machine;
}

std::size_t palindrome_length(std::size_t states, std::size_t counters) {
  NORMSCOPE_ASSERT(states >= 1);
  const auto room = [&](double n) {
    return std::log2(static_cast<double>(states)) + static_cast<double>(counters) * std::log2(2.0 * n + 1.0);
  };
  std::size_t n = 1;
  while (static_cast<double>(n) <= room(static_cast<double>(n))) ++n;
  return n;
}

std::pair<Word, Word> suffix_attack(std::size_t window) {
  const std::size_t j = window + 10;
  const auto alternate = [&](std::size_t second, std::size_t fourth) {
    Word word;
    const std::array<std::size_t, 6> lengths{j, second, j, fourth, j, j};
    for (std::size_t block = 0; block < lengths.size(); ++block) {
      word.insert(word.end(), lengths[block], static_cast<std::uint8_t>(block % 2));
    }
    return word;
  };
  return {alternate(j, j), alternate(j - 1, j + 1)};
}

}  // namespace normscope::nets::rnn
