#include "problem.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace normscope::bench {
namespace {

constexpr std::size_t page_bytes = 4096;

}  // namespace

std::size_t Problem::bytes() const { return size() * bits(dtype) / 8; }

std::shared_ptr<void> aligned(std::size_t bytes) {
  void* const memory = std::aligned_alloc(page_bytes, (bytes + page_bytes - 1) / page_bytes * page_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  return {memory, std::free};
}

std::vector<Values> results_of(Task task, const Values& rows, const Values& gradients) {
  if (task != Task::backward) return {rows};
  const Values of_gain{gradients.at, gradients.count / 2, gradients.dtype};
  const void* const middle = static_cast<const std::byte*>(gradients.at) + of_gain.bytes();
  return {rows, of_gain, {middle, of_gain.count, gradients.dtype}};
}

std::vector<Solver> peers(const Shared& problem, Task task) {
  std::vector<Solver> all;
  for (const auto& peer : {onednn, torch, loop}) {
    if (Peer made = peer(problem, task)) all.push_back(std::move(*made));
  }
  return all;
}

}  // namespace normscope::bench
