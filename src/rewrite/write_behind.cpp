#include "write_behind.hpp"

#include <system_error>
#include <utility>

namespace normscope::rewrite {
namespace {

/// Pieces shorter than this are written together.
constexpr std::size_t shortest = std::size_t{1} << 20U;

}  // namespace

WriteBehind::WriteBehind(Write write) : write_(std::move(write)) {
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error&) {
    // Without another thread, `hand_over` writes.
  }
}

WriteBehind::~WriteBehind() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WriteBehind::push(std::span<const std::byte> bytes) {
  filling_.insert(filling_.end(), bytes.begin(), bytes.end());
  if (filling_.size() >= shortest) hand_over();
}

void WriteBehind::finish() {
  hand_over();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_waiting_; });
  if (failure_) std::rethrow_exception(failure_);
}

void WriteBehind::hand_over() {
  if (!thread_.joinable()) {
    write_(filling_);
    filling_.clear();
    return;
  }
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_waiting_; });
    if (failure_) std::rethrow_exception(failure_);
    std::swap(filling_, writing_);
    is_waiting_ = true;
  }
  changed_.notify_all();
  filling_.clear();
}

void WriteBehind::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_waiting_ || ends_; });
    if (ends_) return;
    lock.unlock();
    std::exception_ptr failure;
    try {
      write_(writing_);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    is_waiting_ = false;
    changed_.notify_all();
  }
}

}  // namespace normscope::rewrite
