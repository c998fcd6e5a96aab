// Steps of training: our hand-written pass against libtorch's autograd, from the same weights.

#include <memory>

#include <fmt/core.h>

#include <normscope/core/random.hpp>
#include <normscope/nets/tasks.hpp>

#include "bench.hpp"
#include "torch.hpp"

namespace {

using namespace normscope;

nets::Dataset noise(std::size_t rows, std::size_t width, std::size_t classes) {
  Random random(7);
  nets::Dataset data{.width = width, .classes = classes};
  for (std::size_t i = 0; i < rows * width; ++i) data.x.push_back(random.normal());
  for (std::size_t i = 0; i < rows; ++i) {
    data.labels.push_back(static_cast<std::uint32_t>(random.below(classes)));
  }
  return data;
}

std::vector<bench::Row> race(const std::string& text, nets::TrainSpec spec, const nets::Dataset& data,
                             std::size_t steps, unsigned threads, int pairs) {
  spec.steps = steps;
  const auto trainer = std::make_shared<nets::Trainer>(spec, data, threads);
  const std::vector<double> begin = trainer->parameters();
  const auto run = [=] {
    // A new training, so that every run does the same work.
    *trainer = nets::Trainer(spec, data, threads);
    while (!trainer->done()) trainer->step();
  };
  const bench::Contender ours{"normscope", run, [trainer] { return trainer->parameters(); }};
  const bool single = spec.precision == Dtype::F32;
  return bench::compare("lnnet", {.text = text, .dtype = single ? "float32" : "float64", .threads = threads},
                        ours, {bench::torch(spec, data, begin, steps, threads)}, pairs, single ? 0.05 : 1e-6);
}

void rows(bool quick, const bench::Show& show) {
  // Few steps, since rounding grows along them; many pairs, since they are short.
  show(race("width 3, batch 512", {}, nets::spiral(512, 1), 200, 1, quick ? 5 : 25));
  const nets::TrainSpec wide{
      .width = 512, .depth = 3, .norm = NormKind::layer, .rate = 1e-3, .precision = Dtype::F32};
  for (const unsigned threads : {1U, 2U}) {
    show(race("width 512, batch 4096", wide, noise(4096, 512, 10), quick ? 5 : 20, threads, 3));
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::main(argc, argv, rows); }
