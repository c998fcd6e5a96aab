// DoubleDouble against libqd and the compiler's binary128: inner products.

#include <memory>

#include <qd/dd_real.h>

#include <normscope/core/exact.hpp>
#include <normscope/core/random.hpp>

#include "pairs.hpp"

namespace normscope::bench {
namespace {

constexpr std::size_t count = 100000;

__extension__ using Quad = __float128;

template <typename Number>
Number inner_product(const std::vector<double>& a, const std::vector<double>& b) {
  Number sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += Number(a[i]) * Number(b[i]);
  return sum;
}

using Values = std::vector<double>;

template <typename Number, typename Parts>
Contender contender(const std::string& name, const Values& a, const Values& b, Parts parts) {
  const auto result = std::make_shared<Values>();
  return {name, [=] { *result = parts(inner_product<Number>(a, b)); }, [=] { return *result; }};
}

}  // namespace

void double_double_rows(bool /*quick*/, const Show& show) {
  Random random(1);
  Values a(count);
  Values b(count);
  for (std::size_t i = 0; i < count; ++i) {
    a[i] = random.normal();
    b[i] = random.normal();
  }
  // High and low part, the low one scaled so that it is compared as well.
  const auto both = [](double high, double low) { return Values{high, 0x1p53 * low}; };
  show(compare(
      "twofold", {.text = std::to_string(count)},
      contender<DoubleDouble>("normscope", a, b, [=](const DoubleDouble& x) { return both(x.high, x.low); }),
      {contender<dd_real>("libqd dd_real", a, b, [=](const dd_real& x) { return both(x.x[0], x.x[1]); }),
       contender<Quad>("binary128", a, b,
                       [=](Quad x) {
                         const auto high = static_cast<double>(x);
                         return both(high, static_cast<double>(x - high));
                       })},
      11, 1e-9));
}

}  // namespace normscope::bench
