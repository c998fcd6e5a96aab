// Gradients of a batch of words: our backpropagation through time against libtorch's LSTM and autograd.

#include <memory>

#include <fmt/core.h>

#include <normscope/core/random.hpp>

#include "torch.hpp"

namespace {

using namespace normscope;

/// Words a^n b^n, and as long ones that are not members.
std::vector<nets::rnn::Labelled> words(std::size_t count, std::size_t n) {
  std::vector<nets::rnn::Labelled> result;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t counts[] = {n + i / 2, n - i / 2};
    result.push_back({nets::rnn::blocks(counts), counts[0] == counts[1]});
  }
  return result;
}

/// One row; the shape is width, words x letters.
std::vector<bench::Row> race(std::size_t width, std::size_t batch, std::size_t n, std::size_t calls,
                             int pairs) {
  Random random(5);
  nets::rnn::Network network{.head = nets::rnn::Head::membership,
                             .cell = nets::rnn::Cell::zeros(nets::rnn::CellKind::lstm, 3, width)};
  for (double& value : network.cell.parameters) value = 0.3 * random.normal();
  for (std::size_t i = 0; i <= width; ++i) network.output.push_back(random.normal());
  const auto batch_of_words = std::make_shared<std::vector<nets::rnn::Labelled>>(words(batch, n));
  const auto answer = std::make_shared<std::vector<double>>();
  const auto run = [=] {
    for (std::size_t call = 0; call < calls; ++call) *answer = gradient(network, *batch_of_words).values;
  };
  const bench::Contender ours{"normscope", run, [answer] { return *answer; }, calls};
  return bench::compare("automata", {.text = fmt::format("{}, {} x {}", width, batch, 2 * n)}, ours,
                        {bench::torch(network, *batch_of_words, calls)}, pairs, 1e-9);
}

void rows(bool quick, const bench::Show& show) {
  const int pairs = quick ? 5 : 25;
  show(race(10, 8, 20, 20, pairs));
  show(race(10, 8, 100, 5, pairs));
  show(race(50, 16, 100, 2, pairs));
}

}  // namespace

int main(int argc, char** argv) { return bench::main(argc, argv, rows); }
