// tanh of automata and taggers, the same bits on every machine, against the C library and Highway's, whose
// bits depend on whether the instruction set has fused multiplication and addition.

#include <cmath>
#include <memory>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/activation.hpp>

#include "pairs.hpp"

namespace normscope::bench {
namespace {

constexpr std::size_t count = 4096;

using Values = std::vector<double>;

void highway_tanh(const Values& x, Values& y) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<double> tag;
  for (std::size_t i = 0; i < count; i += hn::Lanes(tag)) {
    hn::StoreU(hn::Tanh(tag, hn::LoadU(tag, x.data() + i)), tag, y.data() + i);
  }
}

}  // namespace

void exponential_rows(bool /*quick*/, const Show& show) {
  Random random(1);
  Values x(count);
  for (double& value : x) value = 3.0 * random.normal();
  const auto contender = [&x](const std::string& name, auto all) -> Contender {
    const auto y = std::make_shared<Values>(count);
    constexpr std::size_t calls = 100;
    const auto run = [=] {
      for (std::size_t call = 0; call < calls; ++call) all(x, *y);
    };
    return {name, run, [=] { return *y; }, calls};
  };
  show(compare("tanh", {.text = std::to_string(count)},
               contender("normscope",
                         [](const Values& in, Values& out) {
                           for (std::size_t i = 0; i < count; ++i) out[i] = nets::rnn::squash(in[i]);
                         }),
               {contender("C library",
                          [](const Values& in, Values& out) {
                            for (std::size_t i = 0; i < count; ++i) out[i] = std::tanh(in[i]);
                          }),
                contender("Highway", highway_tanh)},
               11, 1e-14));
}

}  // namespace normscope::bench
