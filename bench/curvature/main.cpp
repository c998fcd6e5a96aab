// The Hessian measure of LayerNorm: the closed form against automatic differentiation for a few rows, and the
// time per row as a function of the width.

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <normscope/core/random.hpp>
#include <normscope/norm/curvature.hpp>

#include "bench.hpp"
#include "torch.hpp"

namespace {

using namespace normscope;

constexpr double eps = 1e-5;

std::vector<double> random_rows(std::size_t rows, std::size_t width) {
  Random random(width);
  std::vector<double> x(rows * width);
  for (double& value : x) value = random.normal();
  return x;
}

bench::Contender ours(const std::vector<double>& x, std::size_t width) {
  const auto measures = std::make_shared<std::vector<double>>();
  const auto run = [x, width, measures] {
    *measures = norm::curvature({.width = width, .eps = eps}, {x.data(), x.size() / width, width}, 1);
  };
  return {"normscope", run, [measures] { return *measures; }};
}

/// Prints the time per row at each width, and the exponent with which it grows.
void print_growth(const std::string& who, const std::vector<std::size_t>& widths, std::size_t entries,
                  const std::function<bench::Contender(const std::vector<double>&, std::size_t)>& contender) {
  std::vector<double> sizes;
  std::vector<double> times;
  std::string shown;
  for (const std::size_t width : widths) {
    const std::size_t rows = std::max<std::size_t>(1, entries / width);
    const bench::Contender timed = contender(random_rows(rows, width), width);
    timed.run();
    sizes.push_back(static_cast<double>(width));
    times.push_back(bench::median_seconds(3, timed.run) / static_cast<double>(rows));
    shown += fmt::format("  {}: {:.3g} us", width, 1e6 * times.back());
  }
  fmt::print("{}, time a row:{}; grows like width^{:.2f}\n", who, shown, bench::growth(sizes, times));
}

void rows(bool quick, const bench::Show& show) {
  const std::vector<std::size_t> widths =
      quick ? std::vector<std::size_t>{16, 32} : std::vector<std::size_t>{16, 32, 64, 128};
  for (const std::size_t width : widths) {
    const std::vector<double> x = random_rows(2, width);
    const bench::Shape shape{.text = std::to_string(width)};
    show(bench::compare("curvature", shape, ours(x, width),
                        {bench::automatic_hessian(x, width, eps), bench::batched_hessian(x, width, eps)}, 3,
                        1e-10));
  }
  // Many rows per call, so that the cost of the call is negligible.
  const std::size_t entries = std::size_t{1} << (quick ? 16 : 20);
  print_growth("normscope", {64, 256, 1024, 4096, 16384}, entries, ours);
  const std::vector<std::size_t> hundreds =
      quick ? std::vector<std::size_t>{64, 128} : std::vector<std::size_t>{128, 256, 512};
  print_growth("libtorch, batched", hundreds, 1,
               [](const auto& x, std::size_t width) { return bench::batched_hessian(x, width, eps); });
}

}  // namespace

int main(int argc, char** argv) { return bench::main(argc, argv, rows); }
