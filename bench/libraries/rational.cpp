// Rational, 127 bits and checked, against Boost.Multiprecision and GMP: products of weight matrices, as
// weighted automata form them.

#include <memory>

#include <gmpxx.h>
#include <boost/multiprecision/cpp_int.hpp>

#include <normscope/core/exact.hpp>
#include <normscope/core/random.hpp>

#include "pairs.hpp"

namespace normscope::bench {
namespace {

constexpr std::size_t states = 8;
constexpr std::size_t steps = 1000;

/// Weights 0, 1/2 and 1, and the state after `steps` of them, halved every other step so that its size is
/// bounded.
template <typename Number>
std::vector<Number> weighted_word() {
  Random random(1);
  std::vector<Number> weights;
  for (std::size_t i = 0; i < states * states; ++i) {
    weights.push_back(Number(static_cast<long>(random.below(3))) / Number(2L));
  }
  std::vector<Number> state(states, Number(1L));
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<Number> next(states, Number(0L));
    for (std::size_t i = 0; i < states; ++i) {
      for (std::size_t j = 0; j < states; ++j) next[i] += weights[i * states + j] * state[j];
    }
    state = std::move(next);
    if (step % 16 == 15) state.assign(states, Number(static_cast<long>(step)) / Number(3L));
  }
  return state;
}

template <typename Number, typename Value>
Contender contender(const std::string& name, Value value) {
  const auto state = std::make_shared<std::vector<Number>>();
  return {name, [state] { *state = weighted_word<Number>(); },
          [state, value] {
            std::vector<double> values;
            for (const Number& number : *state) values.push_back(value(number));
            return values;
          }};
}

}  // namespace

void rational_rows(bool /*quick*/, const Show& show) {
  using Boost = boost::multiprecision::cpp_rational;
  show(
      compare("rational", {.text = std::to_string(steps), .dtype = "exact"},
              contender<Rational>("normscope", [](const Rational& number) { return number.value(); }),
              {contender<Boost>("Boost cpp_rational",
                                [](const Boost& number) { return number.convert_to<double>(); }),
               contender<mpq_class>("GMP mpq_class", [](const mpq_class& number) { return number.get_d(); })},
              11, 1e-15));
}

}  // namespace normscope::bench
