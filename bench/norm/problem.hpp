#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/dtype.hpp>

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
  double eps = 1e-5;
  const void* x = nullptr;
  const void* dy = nullptr;
  std::vector<float> gain, bias;
  std::shared_ptr<const void> memory;

  [[nodiscard]] std::size_t size() const { return rows * width; }
  [[nodiscard]] std::size_t bytes() const;
};

using Shared = std::shared_ptr<const Problem>;

/// Zeroed memory at a multiple of 64.
[[nodiscard]] std::shared_ptr<void> aligned(std::size_t bytes);

/// Numbers, where a solver keeps them.
struct Values {
  const void* at = nullptr;
  std::size_t count = 0;
  Dtype dtype = Dtype::F32;

  [[nodiscard]] std::size_t bytes() const { return count * bits(dtype) / 8; }
};

/// One way to do a task. `results` is what the last call left: y, or dx and the gradients of gain and bias.
struct Solver {
  std::string name;
  std::function<void()> call;
  std::function<std::vector<Values>()> results;
};

/// The results of a task that left y or dx in `rows`, and both gradients of a backward pass in `gradients`.
[[nodiscard]] std::vector<Values> results_of(Task task, const Values& rows, const Values& gradients);

[[nodiscard]] Solver ours(const Shared& problem, Task task);

/// None where the peer does not do the task in that type.
using Peer = std::optional<Solver>;

/// libtorch as Debian has it, which calls its own kernels.
[[nodiscard]] Peer torch(const Shared& problem, Task task);
/// oneDNN of PyPI, the newest there that computes without SYCL (onednn.cpp is loaded, not linked).
[[nodiscard]] Peer onednn(const Shared& problem, Task task);
/// What one would write, for the compiler to make vectors of; float32, one thread.
[[nodiscard]] Peer loop(const Shared& problem, Task task);

/// All of them that do the task.
[[nodiscard]] std::vector<Solver> peers(const Shared& problem, Task task);

/// Writes what ours and the peers make of the problem in a file to another, whole and unjudged: accuracy.py's
/// way to them. `arguments` are the task and the two paths.
///
/// Errors    Argument, Format, Shape, Io
void answer(const std::vector<std::string>& arguments);

}  // namespace normscope::bench
