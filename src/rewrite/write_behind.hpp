#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace normscope::rewrite {

/// Passes bytes in their order to `write` in a separate thread, so that the next ones are computed meanwhile.
///
/// Memory    twice the longest piece and 2 MiB
class WriteBehind {
 public:
  using Write = std::function<void(std::span<const std::byte>)>;

  explicit WriteBehind(Write write);
  /// Discards bytes that are not written yet.
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  /// Copies `bytes`; waits for earlier pieces.
  ///
  /// Errors    those of `write` for earlier pieces
  void push(std::span<const std::byte> bytes);
  /// Waits until everything is written.
  ///
  /// Errors    those of `write`
  void finish();

 private:
  void hand_over();
  void serve();

  Write write_;
  std::vector<std::byte> filling_;
  std::mutex mutex_;
  std::condition_variable changed_;
  /// Accessed by the thread alone while `is_waiting_` is true, and by others while it is false.
  std::vector<std::byte> writing_;
  /// These three are accessed under the mutex.
  bool is_waiting_ = false;  ///< whether `writing_` is to be written
  bool ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace normscope::rewrite
