// Conversion of float16 elements against the compiler's _Float16.

#include <cstring>
#include <memory>

#include <normscope/core/dtype.hpp>

#include "pairs.hpp"

namespace normscope::bench {

#ifndef __FLT16_MANT_DIG__
// clang 14 has no _Float16 on x86: nothing to compare with.
void float16_rows(bool /*quick*/, const Show& /*show*/) {}
#else
namespace {

constexpr std::size_t count = std::size_t{1} << 20U;

__extension__ using Half = _Float16;

}  // namespace

void float16_rows(bool /*quick*/, const Show& show) {
  // All finite numbers of the type, repeated.
  const auto bytes = std::make_shared<std::vector<std::byte> >(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    auto bits = static_cast<std::uint16_t>(i);
    if ((bits & 0x7c00U) == 0x7c00U) bits = 0;
    std::memcpy(bytes->data() + 2 * i, &bits, 2);
  }
  const auto own = std::make_shared<std::vector<double> >(count);
  const auto theirs = std::make_shared<std::vector<double> >(count);
  const Shape shape{.text = "2^20", .dtype = "float16"};
  show(compare("decode", shape,
               {"normscope", [=] { decode(Dtype::F16, *bytes, *own); }, [=] { return *own; }},
               {{"_Float16",
                 [=] {
                   for (std::size_t i = 0; i < count; ++i) {
                     Half half;
                     std::memcpy(&half, bytes->data() + 2 * i, 2);
                     (*theirs)[i] = static_cast<double>(half);
                   }
                 },
                 [=] { return *theirs; }}},
               11, 0.0));
  // Numbers that lie between two numbers of the type.
  const auto values = std::make_shared<std::vector<double> >(*own);
  for (std::size_t i = 0; i < count; ++i) (*values)[i] *= 1.0 + 1e-6 * static_cast<double>(i % 1000);
  const auto bits_of = [](const std::vector<std::byte>& all) {
    std::vector<double> bits(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t one = 0;
      std::memcpy(&one, all.data() + 2 * i, 2);
      bits[i] = one;
    }
    return bits;
  };
  const auto own_bytes = std::make_shared<std::vector<std::byte> >(2 * count);
  const auto their_bytes = std::make_shared<std::vector<std::byte> >(2 * count);
  show(compare(
      "encode", shape,
      {"normscope", [=] { encode(Dtype::F16, *values, *own_bytes); }, [=] { return bits_of(*own_bytes); }},
      {{"_Float16",
        [=] {
          for (std::size_t i = 0; i < count; ++i) {
            const auto half = static_cast<Half>((*values)[i]);
            std::memcpy(their_bytes->data() + 2 * i, &half, 2);
          }
        },
        [=] { return bits_of(*their_bytes); }}},
      11, 0.0));
}
#endif

}  // namespace normscope::bench
