// Rows through the kernels under callgrind, which writes a dump for each case and number of rows.
#include <string>
#include <vector>

#include <fmt/core.h>
#include <valgrind/callgrind.h>

#include "norm/kernel_cases.hpp"

namespace normscope::norm {
namespace {

constexpr std::size_t widest = 4096;
/// Multiples of the 64 by which sums over rows go; both beside the same limit of what the kernels take for
/// small, a mebibyte, at every width.
constexpr std::size_t fewer = 192;
constexpr std::size_t more = 320;

/// Counts the instructions of `call` for some rows, under that name.
template <typename Call>
void count(const std::string& name, const Call& call) {
  call(more);
  for (const std::size_t rows : {fewer, more}) {
    const std::string dump = fmt::format("{} {}", name, rows);
    CALLGRIND_ZERO_STATS;
    call(rows);
    CALLGRIND_DUMP_STATS_AT(dump.c_str());
  }
}

template <typename T>
void count_type(const char* type) {
  const test::Rows<T> x = test::random_rows<T>(more, widest, 1);
  const test::Rows<T> dy = test::random_rows<T>(more, widest, 2);
  test::Rows<T> out(more, widest);
  test::Rows<T> sum(more, widest);
  std::vector<Wide<T>> gain(widest, Wide<T>{1}), bias(widest), dgain(widest), dbias(widest);
  CALLGRIND_START_INSTRUMENTATION;
  for (const std::size_t width : {64U, 128U, 768U, 4096U}) {
    const auto of = [&](const test::Rows<T>& rows, std::size_t number) {
      return MatrixView<const T>(rows.values.data(), number, width);
    };
    const auto into = [&](test::Rows<T>& rows, std::size_t number) {
      return MatrixView<T>(rows.values.data(), number, width);
    };
    for (const std::size_t groups : {1U, 8U}) {
      const Layer<T> layer{.width = width,
                           .groups = groups,
                           .gain = std::span(gain).first(width),
                           .bias = std::span(bias).first(width)};
      const std::string where = fmt::format("{} {} {}", type, width, groups);
      count("forward " + where,
            [&](std::size_t rows) { normalize<T>(layer, of(x, rows), into(out, rows), 1); });
      count("backward " + where, [&](std::size_t rows) {
        normalize_backward<T>(layer, of(x, rows), of(dy, rows), into(out, rows),
                              {.gain = std::span(dgain).first(width), .bias = std::span(dbias).first(width)},
                              1);
      });
      if (groups != 1) continue;
      count("residual " + where, [&](std::size_t rows) {
        add_normalize<T>(layer, of(x, rows), of(dy, rows), into(sum, rows), into(out, rows), 1);
      });
    }
  }
  CALLGRIND_STOP_INSTRUMENTATION;
}

}  // namespace
}  // namespace normscope::norm

int main() {
  normscope::norm::count_type<float>("float32");
  normscope::norm::count_type<normscope::norm::Bfloat16>("bfloat16");
}
