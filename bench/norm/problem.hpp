#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/norm/kernels.hpp>

#include "bench.hpp"

namespace normscope::bench {

enum class Task { forward, backward, residual, grouped };

/// What all contenders of a line solve: LayerNorm with gain and bias, of rows × width entries in 64-byte
/// aligned memory, as tensor libraries give it. Every number is one of the type; gain and bias are held in
/// what statistics are in.
struct Problem {
  std::size_t rows = 0;
  std::size_t width = 0;
  Dtype dtype = Dtype::F32;
  unsigned threads = 1;
  const void* x = nullptr;
  const void* dy = nullptr;
  std::vector<float> gain, bias;
  std::shared_ptr<const void> memory;

  [[nodiscard]] std::size_t size() const { return rows * width; }
  [[nodiscard]] std::size_t bytes() const;
  /// Calls a run makes, so that the clock's own time does not count.
  [[nodiscard]] std::size_t repeats() const { return 1 + (std::size_t{1} << 18U) / size(); }
};

inline constexpr double eps = 1e-5;

using Shared = std::shared_ptr<const Problem>;

/// Zeroed memory at a multiple of 64.
[[nodiscard]] std::shared_ptr<void> aligned(std::size_t bytes);

/// The first numbers of a result of the problem's type.
[[nodiscard]] std::vector<double> some(const void* values, const Problem& of);

/// `call`, as often as a run takes; the answer is at `result`.
[[nodiscard]] inline Contender contender(const std::string& name, const Shared& problem,
                                         const std::function<void()>& call,
                                         const std::function<std::vector<double>()>& answer) {
  const std::size_t repeats = problem->repeats();
  return {name,
          [=] {
            for (std::size_t i = 0; i < repeats; ++i) call();
          },
          answer};
}

/// None where the peer does not do the task in that type.
using Peer = std::optional<Contender>;

/// libtorch as Debian has it, which calls its own kernels.
[[nodiscard]] Peer torch(const Shared& problem, Task task);
/// oneDNN of PyPI, the newest there that computes without SYCL (onednn.cpp is loaded, not linked).
[[nodiscard]] Peer onednn(const Shared& problem, Task task);
/// What one would write, for the compiler to make vectors of; float32, one thread.
[[nodiscard]] Peer loop(const Shared& problem, Task task);

}  // namespace normscope::bench
