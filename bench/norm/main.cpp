// LayerNorm with gain and bias, in and out of the caches, on one thread and on two: against oneDNN, libtorch,
// a plain loop, and a copy of the same bytes, which is a lower bound for reading x and writing y.

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>

#include "bench.hpp"
#include "problem.hpp"

namespace normscope::bench {
namespace {

std::string name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64: return "float64";
    case Dtype::BF16: return "bfloat16";
    case Dtype::F16: return "float16";
    default: return "float32";
  }
}

Shared problem(std::size_t rows, std::size_t width, Dtype dtype, unsigned threads) {
  const auto made = std::make_shared<Problem>();
  made->rows = rows;
  made->width = width;
  made->dtype = dtype;
  made->threads = threads;
  const std::size_t bytes = made->bytes();
  const std::shared_ptr<void> memory = aligned(2 * bytes + 2 * width * bits(dtype) / 8);
  std::byte* const at = static_cast<std::byte*>(memory.get());
  Random random(rows + width);
  const auto draw = [&](std::size_t count, std::byte* to) {
    std::vector<double> values(count);
    for (double& value : values) value = static_cast<double>(static_cast<float>(random.normal()));
    const std::span<std::byte> encoded(to, count * bits(dtype) / 8);
    encode(dtype, values, encoded);
    decode(dtype, encoded, values);
    return values;
  };
  draw(made->size(), at);
  draw(made->size(), at + bytes);
  const std::vector<double> parameters = draw(2 * width, at + 2 * bytes);
  for (std::size_t i = 0; i < width; ++i) {
    made->gain.push_back(static_cast<float>(parameters[i]));
    made->bias.push_back(static_cast<float>(parameters[width + i]));
  }
  made->memory = memory;
  made->x = at;
  made->dy = at + bytes;
  return made;
}

/// The first entries of the first result of a solver.
std::vector<double> some(const Values& values) {
  std::vector<double> result(std::min<std::size_t>(values.count, 1U << 20U));
  const std::size_t bytes = result.size() * bits(values.dtype) / 8;
  decode(values.dtype, {static_cast<const std::byte*>(values.at), bytes}, result);
  return result;
}

/// A run makes enough calls for the clock's overhead to be negligible. Gradients of gain and bias are not
/// compared: libtorch sums them in the type of the rows, which accuracy.py shows.
Contender contender(const Solver& solver, const Problem& problem) {
  const std::size_t calls = 1 + (std::size_t{1} << 18U) / problem.size();
  const auto run = [call = solver.call, calls] {
    for (std::size_t i = 0; i < calls; ++i) call();
  };
  Contender made{solver.name, run, nullptr, calls};
  if (solver.results) made.answer = [results = solver.results] { return some(results().front()); };
  return made;
}

/// The time of copying x, which has no answer to compare.
Contender copy(const Shared& problem) {
  const std::shared_ptr<void> to = aligned(problem->bytes());
  const auto call = [=] {
    parallel_for(problem->bytes(), std::size_t{1} << 20U, problem->threads,
                 [&](std::size_t first, std::size_t last) {
                   std::memcpy(static_cast<std::byte*>(to.get()) + first,
                               static_cast<const std::byte*>(problem->x) + first, last - first);
                 });
  };
  return contender({"copy of x", call, nullptr}, *problem);
}

struct Size {
  std::size_t rows, width;
};

void measure(Size size, Dtype dtype, unsigned threads, const Show& show) {
  const Shared shared = problem(size.rows, size.width, dtype, threads);
  const Shape shape{
      .text = fmt::format("{}x{}", size.rows, size.width), .dtype = name_of(dtype), .threads = threads};
  const int pairs = shared->size() > (1U << 22U) ? 11 : 25;
  const double tolerance = dtype == Dtype::BF16 ? 0.02 : dtype == Dtype::F16 ? 0.003 : 1e-5;
  const auto against = [&](const char* name, Task task, std::vector<Contender> limits) {
    std::vector<Contender> contenders;
    for (const Solver& peer : peers(shared, task)) contenders.push_back(contender(peer, *shared));
    contenders.insert(contenders.end(), limits.begin(), limits.end());
    show(compare(name, shape, contender(ours(shared, task), *shared), contenders, pairs, tolerance));
  };
  against("forward", Task::forward, {copy(shared)});
  against("backward", Task::backward, {});
  against("residual", Task::residual, {});
  // The plain norm's time over that of eight groups: the cost of groups.
  const Solver plain{"normscope, one group", ours(shared, Task::forward).call, nullptr};
  against("8 groups", Task::grouped, {contender(plain, *shared)});
}

void rows(bool quick, const Show& show) {
  // Results stay mapped between calls; otherwise peers that allocate them would also pay for page faults.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const std::vector<Size> sizes =
      quick ? std::vector<Size>{{1, 64}, {1, 4096}, {256, 128}, {64, 4096}}
            : std::vector<Size>{{1, 64},      {1, 4096},    {64, 64},      {256, 128},   {64, 768},
                                {64, 4096},   {16, 16384},  {1024, 1024},  {4096, 768},  {512, 4096},
                                {128, 16384}, {65536, 128}, {16384, 1024}, {4096, 4096}, {1024, 16384}};
  for (const Dtype dtype : {Dtype::F32, Dtype::BF16, Dtype::F16, Dtype::F64}) {
    for (const Size& size : sizes) measure(size, dtype, 1, show);
    if (quick || thread_count(0) == 1) continue;
    for (const Size& size : {Size{64, 4096}, Size{4096, 768}, Size{4096, 4096}})
      measure(size, dtype, 2, show);
  }
}

}  // namespace

}  // namespace normscope::bench

int main(int argc, char** argv) {
  using namespace normscope::bench;
  if (argc < 2 || std::string_view(argv[1]) != "--answer") return main(argc, argv, rows);
  try {
    answer({argv + 2, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_norm: {}\n", error.what());
    return 2;
  }
}
