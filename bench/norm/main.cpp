// LayerNorm with gain and bias, in and out of the caches, on one thread and on two: against oneDNN, libtorch,
// the loop that one would write, and a copy of the same bytes, which nothing that reads x and writes y beats.

#include <dlfcn.h>
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>

#include "problem.hpp"

namespace normscope::bench {

std::size_t Problem::bytes() const { return size() * bits(dtype) / 8; }

std::shared_ptr<void> aligned(std::size_t bytes) {
  const std::size_t line = 64;
  void* const memory = std::aligned_alloc(line, (bytes + line - 1) / line * line);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  return {memory, std::free};
}

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

template <typename T>
Contender ours(const Shared& problem, Task task) {
  using W = norm::Wide<T>;
  struct Own {
    std::shared_ptr<void> result, sum;
    std::vector<W> gain, bias, gradients;
  };
  const auto own = std::make_shared<Own>();
  own->result = aligned(problem->bytes());
  own->sum = aligned(task == Task::residual ? problem->bytes() : 64);
  own->gain.assign(problem->gain.begin(), problem->gain.end());
  own->bias.assign(problem->bias.begin(), problem->bias.end());
  own->gradients.resize(2 * problem->width);
  const norm::Layer<T> layer{.width = problem->width,
                             .groups = task == Task::grouped ? std::size_t{8} : std::size_t{1},
                             .eps = eps,
                             .gain = own->gain,
                             .bias = own->bias};
  const auto given = [=](const void* at) {
    return MatrixView<const T>(static_cast<const T*>(at), problem->rows, problem->width);
  };
  const auto into = [=](const std::shared_ptr<void>& at) {
    return MatrixView<T>(static_cast<T*>(at.get()), problem->rows, problem->width);
  };
  const auto call = [=] {
    switch (task) {
      case Task::forward:
      case Task::grouped:
        return norm::normalize<T>(layer, given(problem->x), into(own->result), problem->threads);
      case Task::residual:
        return norm::add_normalize<T>(layer, given(problem->x), given(problem->dy), into(own->sum),
                                      into(own->result), problem->threads);
      case Task::backward: {
        const std::span<W> both(own->gradients);
        return norm::normalize_backward<T>(
            layer, given(problem->x), given(problem->dy), into(own->result),
            {.gain = both.first(problem->width), .bias = both.last(problem->width)}, problem->threads);
      }
    }
  };
  return contender("normscope", problem, call, [=] { return some(own->result.get(), *problem); });
}

Contender ours(const Shared& problem, Task task) {
  switch (problem->dtype) {
    case Dtype::F64: return ours<double>(problem, task);
    case Dtype::BF16: return ours<norm::Bfloat16>(problem, task);
    case Dtype::F16: return ours<norm::Float16>(problem, task);
    default: return ours<float>(problem, task);
  }
}

/// What a copy of x takes: it has no answer.
Contender copy(const Shared& problem) {
  const std::shared_ptr<void> to = aligned(problem->bytes());
  const auto call = [=] {
    parallel_for(problem->bytes(), std::size_t{1} << 20U, problem->threads,
                 [&](std::size_t first, std::size_t last) {
                   std::memcpy(static_cast<std::byte*>(to.get()) + first,
                               static_cast<const std::byte*>(problem->x) + first, last - first);
                 });
  };
  return contender("copy of x", problem, call, nullptr);
}

struct Size {
  std::size_t rows, width;
};

/// Loaded with names of its own, since libtorch brings an older oneDNN.
Peer onednn(const Shared& problem, Task task) {
  static const auto make = [] {
    void* const library = dlopen(NORMSCOPE_ONEDNN, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    void* const found = library == nullptr ? nullptr : dlsym(library, "normscope_onednn");
    if (found == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<void (*)(const Shared&, Task, Peer&)>(found);
  }();
  Peer peer;
  make(problem, task, peer);
  return peer;
}

void measure(Size size, Dtype dtype, unsigned threads, const Show& show) {
  const Shared shared = problem(size.rows, size.width, dtype, threads);
  const Shape shape{
      .text = fmt::format("{}x{}", size.rows, size.width), .dtype = name_of(dtype), .threads = threads};
  const int pairs = shared->size() > (1U << 22U) ? 11 : 25;
  const double tolerance = dtype == Dtype::BF16 ? 0.02 : dtype == Dtype::F16 ? 0.003 : 1e-5;
  const auto against = [&](const char* name, Task task, std::vector<Contender> limits) {
    std::vector<Contender> peers;
    for (const auto& peer : {onednn, torch, loop}) {
      if (Peer made = peer(shared, task)) peers.push_back(std::move(*made));
    }
    peers.insert(peers.end(), limits.begin(), limits.end());
    show(compare(name, shape, ours(shared, task), peers, pairs, tolerance));
  };
  against("forward", Task::forward, {copy(shared)});
  against("backward", Task::backward, {});
  against("residual", Task::residual, {});
  // The plain norm's time over that of eight groups: what the groups cost.
  Contender plain = ours(shared, Task::forward);
  plain.name = "normscope, one group";
  plain.answer = nullptr;
  against("8 groups", Task::grouped, {plain});
}

void rows(bool quick, const Show& show) {
  // Results stay mapped between calls, or the peers that allocate them would pay for pages.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const std::vector<Size> sizes =
      quick ? std::vector<Size>{{1, 4096}, {256, 128}, {64, 4096}}
            : std::vector<Size>{{1, 64},      {1, 4096},     {64, 64},     {256, 128},   {64, 768},
                                {64, 4096},   {16, 16384},   {4096, 768},  {512, 4096},  {128, 16384},
                                {65536, 128}, {16384, 1024}, {4096, 4096}, {1024, 16384}};
  for (const Dtype dtype : {Dtype::F32, Dtype::BF16, Dtype::F16, Dtype::F64}) {
    for (const Size& size : sizes) measure(size, dtype, 1, show);
    if (quick || thread_count(0) == 1) continue;
    for (const Size& size : {Size{64, 4096}, Size{4096, 768}, Size{4096, 4096}})
      measure(size, dtype, 2, show);
  }
}

}  // namespace

std::vector<double> some(const void* values, const Problem& of) {
  std::vector<double> result(std::min<std::size_t>(of.size(), 1U << 20U));
  decode(of.dtype, {static_cast<const std::byte*>(values), result.size() * bits(of.dtype) / 8}, result);
  return result;
}

}  // namespace normscope::bench

int main(int argc, char** argv) { return normscope::bench::main(argc, argv, normscope::bench::rows); }
