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

/// The problem of one line of the table: LayerNorm with gain and bias, of rows × width entries in
/// page-aligned memory, where large tensors lie: all matrices have the same offset in a page. Every number is
/// one of the type; gain and bias are stored in the type of the statistics.
struct Problem {
  std::size_t rows = 0;
  std::size_t width = 0;
  std::size_t stride = 0;  ///< entries from row to row; beyond `width` only `ours` can solve it
  Dtype dtype = Dtype::F32;
  unsigned threads = 1;
  double eps = 1e-5;
  const void* x = nullptr;
  const void* dy = nullptr;
  std::vector<float> gain, bias;
  std::shared_ptr<const void> memory;

  /// Entries of x, with those between its rows.
  [[nodiscard]] std::size_t size() const { return rows * stride; }
  [[nodiscard]] std::size_t bytes() const;
};

using Shared = std::shared_ptr<const Problem>;

/// Zeroed memory that begins with a page.
[[nodiscard]] std::shared_ptr<void> aligned(std::size_t bytes);

/// Numbers in the memory of a solver.
struct Values {
  const void* at = nullptr;
  std::size_t count = 0;
  Dtype dtype = Dtype::F32;

  [[nodiscard]] std::size_t bytes() const { return count * bits(dtype) / 8; }
};

/// One way to solve a task. `results` returns those of the last call: y, or dx and the gradients of gain and
/// bias.
struct Solver {
  std::string name;
  std::function<void()> call;
  std::function<std::vector<Values>()> results;
};

/// The results of a task that left y or dx in `rows`, and both gradients of a backward pass in `gradients`.
[[nodiscard]] std::vector<Values> results_of(Task task, const Values& rows, const Values& gradients);

[[nodiscard]] Solver ours(const Shared& problem, Task task);

/// Empty if the peer does not support the task in that type.
using Peer = std::optional<Solver>;

/// Debian's libtorch, which calls its own kernels.
[[nodiscard]] Peer torch(const Shared& problem, Task task);
/// oneDNN of PyPI, the newest release there that works without SYCL (onednn.cpp is loaded, not linked).
[[nodiscard]] Peer onednn(const Shared& problem, Task task);
/// A plain loop that the compiler can vectorize; float32, one thread.
[[nodiscard]] Peer loop(const Shared& problem, Task task);

/// All contenders that can solve the task.
[[nodiscard]] std::vector<Solver> peers(const Shared& problem, Task task);

/// Reads a problem from a file and writes our results and the peers' to another, for accuracy.py.
/// `arguments` are the task and the two paths.
///
/// Errors    Argument, Format, Shape, Io
void answer(const std::vector<std::string>& arguments);

}  // namespace normscope::bench
