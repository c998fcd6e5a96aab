// Causal attention of narrow heads, forward and backward, on one thread: the lab's kernel against libtorch.

#include <memory>

#include <fmt/core.h>

#include <normscope/core/random.hpp>

#include "language/attention.hpp"
#include "torch.hpp"
#include "torch/threads.hpp"

namespace {

using namespace normscope;
namespace language = lab::language;

std::vector<bench::Row> race(std::size_t width, std::size_t length, double dropout, int pairs) {
  Random random(3);
  bench::Heads heads{.heads = 32, .width = width, .length = length, .dropout = dropout};
  heads.parts.resize(3 * heads.heads * width * length);
  heads.by_out.resize(heads.heads * width * length);
  for (float& entry : heads.parts) entry = static_cast<float>(random.normal());
  for (float& entry : heads.by_out) entry = static_cast<float>(random.normal());
  const language::Attention shape{
      .heads = heads.heads, .width = width, .length = length, .dropout = dropout, .noise = 1};
  const auto gradient = std::make_shared<std::vector<float>>(heads.parts.size());
  const auto run = [=] {
    std::vector<float> out(heads.by_out.size());
    std::vector<float> softmax(2 * heads.heads * length);
    language::attend(shape, heads.parts, out, softmax);
    language::attend_back(shape, heads.parts, out, softmax, heads.by_out, *gradient);
  };
  const auto answer = [=] { return std::vector<double>(gradient->begin(), gradient->end()); };
  return bench::compare(
      "attention",
      {.text = fmt::format("32 heads of {}, {} positions{}", width, length, dropout > 0.0 ? ", dropout" : ""),
       .dtype = "float32"},
      {"normscope", run, answer}, {bench::torch(heads)}, pairs, 1e-4);
}

void rows(bool quick, const bench::Show& show) {
  const int pairs = quick ? 5 : 25;
  lab::use_threads(1);
  for (const double dropout : {0.0, 0.1}) {
    for (const std::size_t width : {2U, 8U}) show(race(width, 256, dropout, pairs));
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::main(argc, argv, rows); }
