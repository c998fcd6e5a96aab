// All semi-axes of a LayerNorm's image: the secular equation against a dense eigensolver.

#include <memory>

#include <normscope/core/random.hpp>
#include <normscope/norm/image.hpp>

#include "bench.hpp"
#include "dsyevd.hpp"

extern "C" void openblas_set_num_threads(int threads);

namespace {

using namespace normscope;

bench::Contender ours(const std::vector<double>& gain, unsigned threads) {
  const auto semi_axes = std::make_shared<std::vector<double>>();
  const auto run = [gain, threads, semi_axes] {
    const norm::NormImage image({.width = gain.size(), .gain = gain}, threads);
    semi_axes->assign(image.semi_axes().begin(), image.semi_axes().end());
  };
  return {"normscope", run, [semi_axes] { return *semi_axes; }};
}

void rows(bool quick, const bench::Show& show) {
  const std::vector<std::size_t> widths =
      quick ? std::vector<std::size_t>{256, 768} : std::vector<std::size_t>{768, 2048, 4096};
  for (const std::size_t width : widths) {
    for (const unsigned threads : {1U, 2U}) {
      Random random(width);
      std::vector<double> gain(width);
      for (double& g : gain) g = 1.0 + 0.3 * random.normal();
      openblas_set_num_threads(static_cast<int>(threads));
      const bench::Shape shape{.text = std::to_string(width), .threads = threads};
      show(bench::compare("geometry", shape, ours(gain, threads), {bench::dsyevd(gain)},
                          width >= 4096 ? 3 : 5, 1e-10));
    }
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::main(argc, argv, rows); }
