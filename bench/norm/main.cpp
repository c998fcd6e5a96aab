// LayerNorm with gain and bias, in and out of the caches, on one thread and on two: against oneDNN, libtorch,
// a plain loop, and a copy of the same bytes, which is a lower bound for reading x and writing y. Then rows a
// power of two apart against rows 192 bytes further apart: the ratio is the cost of such strides.

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// A problem whose numbers do not depend on the stride.
Shared problem(std::size_t rows, std::size_t width, std::size_t stride, Dtype dtype, unsigned threads) {
  const auto made = std::make_shared<Problem>();
  made->rows = rows;
  made->width = width;
  made->stride = stride;
  made->dtype = dtype;
  made->threads = threads;
  struct Memory {
    std::shared_ptr<void> x, dy;
  };
  const auto memory = std::make_shared<Memory>(Memory{aligned(made->bytes()), aligned(made->bytes())});
  Random random(rows + width);
  std::vector<double> values(width);
  std::vector<std::byte> encoded(width * bits(dtype) / 8);
  const auto draw = [&] {
    for (double& value : values) value = static_cast<double>(static_cast<float>(random.normal()));
    encode(dtype, values, encoded);
  };
  for (const std::shared_ptr<void>& matrix : {memory->x, memory->dy}) {
    for (std::size_t row = 0; row < rows; ++row) {
      draw();
      std::memcpy(static_cast<std::byte*>(matrix.get()) + row * stride * bits(dtype) / 8, encoded.data(),
                  encoded.size());
    }
  }
  for (std::vector<float>* const parameter : {&made->gain, &made->bias}) {
    draw();
    decode(dtype, encoded, values);
    parameter->assign(values.begin(), values.end());
  }
  made->memory = memory;
  made->x = memory->x.get();
  made->dy = memory->dy.get();
  return made;
}

/// The first entries of the first result of a solver.
std::vector<double> some(const Values& values) {
  std::vector<double> result(std::min<std::size_t>(values.count, 1U << 20U));
  const std::size_t bytes = result.size() * bits(values.dtype) / 8;
  decode(values.dtype, {static_cast<const std::byte*>(values.at), bytes}, result);
  return result;
}

/// A run makes enough calls for the clock's overhead to be negligible, as many whatever the stride. Gradients
/// of gain and bias are not compared: libtorch sums them in the type of the rows, which accuracy.py shows.
Contender contender(const Solver& solver, const Problem& problem) {
  const std::size_t calls = 1 + (std::size_t{1} << 18U) / (problem.rows * problem.width);
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

Shape shape_of(Size size, Dtype dtype, unsigned threads) {
  return {.text = fmt::format("{}x{}", size.rows, size.width),
          .dtype = name_of(dtype),
          .threads = threads,
          .clock = threads == 1 ? Clock::thread : Clock::wall};
}

void measure(Size size, Dtype dtype, unsigned threads, const Show& show) {
  const Shared shared = problem(size.rows, size.width, size.width, dtype, threads);
  const Shape shape = shape_of(size, dtype, threads);
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

/// The first rows of the result, without what lies between them.
Contender with_stride(const Shared& problem, Task task, const std::string& name) {
  const Solver solver = ours(problem, task);
  Contender made = contender(solver, *problem);
  made.name = name;
  made.answer = [results = solver.results, width = problem->width, stride = problem->stride] {
    const std::vector<double> all = some(results().front());
    std::vector<double> result;
    for (std::size_t at = 0; at < std::min(all.size(), 16 * stride); at += stride) {
      result.insert(result.end(), all.data() + at, all.data() + at + width);
    }
    return result;
  };
  return made;
}

/// The time of rows a power of two apart over that of their padded neighbours, which does not depend on where
/// lines fall into the caches; the results are the same, bit for bit.
void measure_strides(Size size, Dtype dtype, const Show& show) {
  const std::size_t stride = std::bit_ceil(size.width);
  const std::size_t padding = 192 * 8 / bits(dtype);
  const Shared apart = problem(size.rows, size.width, stride, dtype, 1);
  const Shared padded = problem(size.rows, size.width, stride + padding, dtype, 1);
  const std::string name = fmt::format("rows {} bytes apart", stride * bits(dtype) / 8);
  for (const auto& [task, title] :
       {std::pair(Task::forward, "forward"), std::pair(Task::backward, "backward"),
        std::pair(Task::residual, "residual")}) {
    show(compare(title, shape_of(size, dtype, 1), with_stride(padded, task, "192 bytes further apart"),
                 {with_stride(apart, task, name)}, 25, 0.0));
  }
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
    const std::vector<Size> sizes_of_strides =
        quick ? std::vector<Size>{{64, 1024}}
              : std::vector<Size>{{256, 1024},  {1024, 768},   {1024, 1024}, {1024, 2048},
                                  {16384, 768}, {16384, 1024}, {8192, 2048}, {4096, 4096}};
    for (const Size& size : sizes_of_strides) {
      measure_strides(size, dtype, show);
    }
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
