// Normal numbers against the standard library. Their answers are the mean and the variance, which agree only
// within their spread.

#include <memory>
#include <random>

#include <normscope/core/random.hpp>

#include "pairs.hpp"

namespace normscope::bench {
namespace {

constexpr std::size_t count = 1000000;

using Values = std::vector<double>;

template <typename Draw>
Contender contender(const std::string& name, Draw draw) {
  const auto moments = std::make_shared<Values>();
  const auto run = [=]() mutable {
    double sum = 0.0;
    double squares = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      const double value = draw();
      sum += value;
      squares += value * value;
    }
    *moments = {sum / count, squares / count};
  };
  return {name, run, [=] { return *moments; }};
}

}  // namespace

void random_rows(bool /*quick*/, const Show& show) {
  show(
      compare("normal", {.text = std::to_string(count)},
              contender("normscope", [random = Random(1)]() mutable { return random.normal(); }),
              {contender("std::normal_distribution",
                         [engine = std::mt19937_64(1),
                          normal = std::normal_distribution<double>()]() mutable { return normal(engine); })},
              11, 0.01));
}

}  // namespace normscope::bench
