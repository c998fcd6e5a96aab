#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/cell.hpp>
#include <normscope/nets/rnn/counter_machine.hpp>

#include "frame/experiment.hpp"

// Simplified counter machines: counters that each letter increments, decrements, leaves or resets, and that
// are compared with 0.
namespace normscope::lab::weiss_machines {
namespace {

namespace rnn = nets::rnn;

constexpr std::size_t letters = 3;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  return {{Json{{"check", "simulation"}, {"machines", quick ? 20 : 300}, {"words", 30}},
           Json{{"check", "palindromes"}, {"most_states", quick ? 8 : 1024}, {"most_counters", 6}},
           Json{{"check", "binary counter"}, {"largest_weight", quick ? 2 : 6}}},
          1};
}

enum Operation : std::size_t { increment, decrement, leave, reset, operations };

/// What each letter does to each counter.
struct Machine {
  std::size_t counters = 0;
  std::vector<std::size_t> operation{};  ///< (letters, counters)

  [[nodiscard]] rnn::CounterMachine counter_machine() const {
    rnn::CounterMachine machine(letters, 1, counters);
    for (std::size_t letter = 0; letter < letters; ++letter) {
      std::vector<rnn::Update> updates;
      for (std::size_t k = 0; k < counters; ++k) {
        const std::size_t what = operation[letter * counters + k];
        updates.push_back({.keep = what != reset, .add = what == increment ? 1 : what == decrement ? -1 : 0});
      }
      machine.set(letter, 0, 0, updates);
    }
    return machine;
  }
};

/// Gates of ±50 are open or closed to the last bit.
constexpr double certain = 50.0;

/// An LSTM whose c are the counters.
rnn::Cell lstm_of(const Machine& machine) {
  rnn::Cell cell = rnn::Cell::zeros(rnn::CellKind::lstm, letters, machine.counters);
  enum : std::size_t { input, forget, output, candidate };
  for (std::size_t k = 0; k < machine.counters; ++k) {
    cell.bias(output)[k] = certain;
    for (std::size_t letter = 0; letter < letters; ++letter) {
      const std::size_t what = machine.operation[letter * machine.counters + k];
      const bool counts = what == increment || what == decrement;
      cell.weight(input)[k * letters + letter] = counts ? certain : -1000.0;
      cell.weight(forget)[k * letters + letter] = what == reset ? -1000.0 : certain;
      cell.weight(candidate)[k * letters + letter] = what == increment   ? certain
                                                     : what == decrement ? -certain
                                                                         : 0.0;
    }
  }
  return cell;
}

/// An Elman network with ReLU: of each counter the increments and the decrements; a reset subtracts so much
/// that both are 0.
rnn::Cell rectifier_of(const Machine& machine) {
  rnn::Cell cell = rnn::Cell::zeros(rnn::CellKind::elman_relu, letters, 2 * machine.counters);
  for (std::size_t unit = 0; unit < cell.width; ++unit) {
    cell.recurrent(0)[unit * cell.width + unit] = 1.0;
    for (std::size_t letter = 0; letter < letters; ++letter) {
      const std::size_t what = machine.operation[letter * machine.counters + unit / 2];
      const bool counts = what == (unit % 2 == 0 ? increment : decrement);
      cell.weight(0)[unit * letters + letter] = what == reset ? -0x1p40 : counts ? 1.0 : 0.0;
    }
  }
  return cell;
}

void simulation(Run& run) {
  Random random(run.seed());
  std::size_t lstm_wrong = 0;
  std::size_t rectifier_wrong = 0;
  std::size_t zeros_wrong = 0;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < run.get<std::size_t>("machines"); ++i) {
    Machine machine{.counters = 1 + random.below(4)};
    for (std::size_t j = 0; j < letters * machine.counters; ++j)
      machine.operation.push_back(random.below(operations));
    const rnn::CounterMachine exact = machine.counter_machine();
    const rnn::Cell lstm = lstm_of(machine);
    const rnn::Cell rectifier = rectifier_of(machine);
    for (std::size_t j = 0; j < run.get<std::size_t>("words"); ++j) {
      rnn::CounterMachine::Configuration counters = exact.start();
      rnn::State one = rnn::initial(lstm);
      rnn::State other = rnn::initial(rectifier);
      for (std::size_t length = random.below(200); length > 0; --length) {
        const auto letter = static_cast<std::uint8_t>(random.below(letters));
        exact.advance(letter, counters);
        rnn::advance(lstm, letter, one);
        rnn::advance(rectifier, letter, other);
        for (std::size_t k = 0; k < machine.counters; ++k) {
          const auto count = static_cast<double>(counters.counters[k]);
          ++compared;
          lstm_wrong += std::abs(one.cell[k] - count) < 1e-9 ? 0 : 1;
          zeros_wrong += (std::abs(one.hidden[k]) < 0.5) == (count == 0.0) ? 0 : 1;
          rectifier_wrong += other.hidden[2 * k] - other.hidden[2 * k + 1] == count ? 0 : 1;
        }
      }
    }
  }
  run.measure("compared", 1, static_cast<double>(compared));
  run.measure("lstm_wrong", 1, static_cast<double>(lstm_wrong));
  run.measure("zeros_wrong", 1, static_cast<double>(zeros_wrong));
  run.measure("rectifier_wrong", 1, static_cast<double>(rectifier_wrong));
}

void palindromes(Run& run) {
  std::size_t most = 0;
  bool exceeded = true;
  for (std::size_t states = 1; states <= run.get<std::size_t>("most_states"); states *= 2) {
    for (std::size_t counters = 0; counters <= run.get<std::size_t>("most_counters"); ++counters) {
      const std::size_t n = rnn::palindrome_length(states, counters);
      most = std::max(most, n);
      const auto length = static_cast<double>(n);
      exceeded = exceeded && length > std::log2(static_cast<double>(states)) +
                                          static_cast<double>(counters) * std::log2(2.0 * length + 1.0);
    }
  }
  run.measure("longest", 1, static_cast<double>(most));
  run.measure("exceeded", 1, exceeded ? 1.0 : 0.0);
}

/// The functions of two bits, as four answers, that some threshold of weights up to `largest` computes.
void binary_counter(Run& run) {
  const auto largest = run.get<std::int64_t>("largest_weight");
  std::set<unsigned> found;
  for (std::int64_t first = -largest; first <= largest; ++first) {
    for (std::int64_t second = -largest; second <= largest; ++second) {
      // Odd twice the bias, so that no sum is 0.
      for (std::int64_t bias = -4 * largest - 1; bias <= 4 * largest + 1; bias += 2) {
        unsigned answers = 0;
        for (unsigned bits = 0; bits < 4; ++bits) {
          const std::int64_t sum =
              2 * first * ((bits & 1U) != 0 ? 1 : -1) + 2 * second * ((bits & 2U) != 0 ? 1 : -1) + bias;
          answers |= (sum > 0 ? 1U : 0U) << bits;
        }
        found.insert(answers);
      }
    }
  }
  constexpr unsigned exclusive_or = 0b0110;
  run.measure("thresholds", 1, static_cast<double>(found.size()));
  run.measure("flips", 1, found.count(exclusive_or) != 0 ? 1.0 : 0.0);
}

void perform(Run& run) {
  const auto check = run.get<std::string>("check");
  check == "simulation" ? simulation(run) : check == "palindromes" ? palindromes(run) : binary_counter(run);
  run.reached(1, 1, [] { return Bytes{}; });
}

const Done* only(const Results& results, const char* check) {
  for (const Done& run : results.runs()) {
    if (run.is("check", check)) return &run;
  }
  return nullptr;
}

Finding simulated(const Results& results, std::initializer_list<const char*> wrong) {
  const Done* const run = only(results, "simulation");
  if (run == nullptr) return {"not run"};
  double mistakes = 0.0;
  for (const char* metric : wrong) mistakes += run->last(metric);
  return {fmt::format("{:.0f} wrong of {:.0f} counters after letters, {} machines of 1 to 4 counters",
                      mistakes, run->last("compared"), run->configuration.at("machines").get<std::size_t>()),
          one_case(mistakes == 0.0)};
}

Finding of_lstm(const Results& results) { return simulated(results, {"lstm_wrong", "zeros_wrong"}); }
Finding of_rectifier(const Results& results) { return simulated(results, {"rectifier_wrong"}); }

Finding of_palindromes(const Results& results) {
  const Done* const run = only(results, "palindromes");
  if (run == nullptr) return {"not run"};
  return {fmt::format(
              "words of at most {:.0f} letters are more than the configurations of every machine of up to "
              "{} states and {} counters",
              run->last("longest"), run->configuration.at("most_states").get<std::size_t>(),
              run->configuration.at("most_counters").get<std::size_t>()),
          one_case(run->last("exceeded") == 1.0)};
}

Finding of_binary(const Results& results) {
  const Done* const run = only(results, "binary counter");
  if (run == nullptr) return {"not run"};
  return {fmt::format(
              "thresholds compute {:.0f} of the 16 functions of two bits, \"the bits differ\" is {} of them",
              run->last("thresholds"), run->last("flips") == 0.0 ? "none" : "one"),
          one_case(run->last("flips") == 0.0 && run->last("thresholds") == 14.0)};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "weiss-machines",
    .paper = "Weiss 2018",
    .claim =
        "Simplified counter machines: an LSTM and an Elman network with ReLU simulate them, palindromes "
        "exceed "
        "them, and an Elman network with tanh does not count in binary.",
    .quick_seconds = 1,
    .full_minutes = 0.1,
    .scale = {.paper = "statements about every machine",
              .ours = "300 random machines of up to four counters, 30 words of up to 200 letters each"},
    .plan = plan,
    .perform = perform,
    .claims = {
        {.name = "lstm",
         .says =
             "An LSTM simulates the counters of every simplified counter machine and compares them with 0.",
         .paper = "section 3",
         .rule =
             {"of 300 random machines, whose letters increment, decrement, leave or reset each of up to four "
              "counters, c is every counter to 1e-9 after every letter, and h is below 1/2 exactly where it "
              "is 0"},
         .judge = of_lstm},
        {.name = "elman_relu",
         .says = "An Elman network with ReLU simulates them with two units a counter.",
         .paper = "section 3, after Chen et al. 2017",
         .rule = {"the same machines: the difference of both units is every counter after every letter"},
         .judge = of_rectifier},
        {.name = "palindromes",
         .says = "No such machine recognizes palindromes with a marked middle.",
         .paper = "section 2",
         .rule =
             {"for up to 1024 states and 6 counters there is an n with 2^n > |Q| (2n + 1)^k, the bound on "
              "configurations after n letters"},
         .judge = of_palindromes},
        {.name = "binary_counter",
         .says = "Saturated tanh units that are the bits of a number do not count it up.",
         .paper =
             "the appendix: an Elman network with tanh is no binary counter; our version is about bits that "
             "are units",
         .rule =
             {"the next second bit is whether both bits differ; thresholds of two bits with weights up to 6 "
              "compute all 14 threshold functions and not this one"},
         .judge = of_binary}}};

}  // namespace normscope::lab::weiss_machines
