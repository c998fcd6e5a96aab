// The Hessian measure of LayerNorm at a few rows: the closed form against automatic differentiation.

#include <memory>

#include <normscope/core/random.hpp>
#include <normscope/norm/curvature.hpp>

#include "bench.hpp"
#include "torch.hpp"

namespace {

using namespace normscope;

constexpr double eps = 1e-5;

bench::Contender ours(const std::vector<double>& x, std::size_t width) {
  const auto measures = std::make_shared<std::vector<double>>();
  const auto run = [x, width, measures] {
    *measures = norm::curvature({.width = width, .eps = eps}, {x.data(), x.size() / width, width}, 1);
  };
  return {"normscope", run, [measures] { return *measures; }};
}

std::vector<bench::Row> rows(bool quick) {
  std::vector<bench::Row> table;
  const std::vector<std::size_t> widths =
      quick ? std::vector<std::size_t>{16, 32} : std::vector<std::size_t>{16, 32, 64, 128};
  for (const std::size_t width : widths) {
    Random random(width);
    std::vector<double> x(2 * width);
    for (double& value : x) value = random.normal();
    const bench::Shape shape{.text = std::to_string(width)};
    for (bench::Row& row : bench::compare("curvature", shape, ours(x, width),
                                          {bench::automatic_hessian(x, width, eps)}, 3, 1e-10)) {
      table.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace

int main(int argc, char** argv) { return bench::main(argc, argv, rows); }
