#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace normscope {

/// What `parallel_for` calls: any callable as `body(begin, end)`, which it refers to and does not own.
class PieceBody {
 public:
  template <typename Callable, typename = std::enable_if_t<!std::is_same_v<
                                   std::remove_cv_t<std::remove_reference_t<Callable>>, PieceBody>>>
  // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload): a lambda is a body
  PieceBody(Callable&& callable)
      : callable_(const_cast<void*>(static_cast<const volatile void*>(std::addressof(callable)))),
        call_([](void* body, std::size_t begin, std::size_t end) {
          (*static_cast<std::remove_reference_t<Callable>*>(body))(begin, end);
        }) {}

  void operator()(std::size_t begin, std::size_t end) const { call_(callable_, begin, end); }

 private:
  void* callable_;
  void (*call_)(void* body, std::size_t begin, std::size_t end);
};

/// Calls `body(begin, end)` on consecutive pieces of [0, count), on up to `threads` threads
/// (0: as many as the machine has). Pieces are as even as they can be, as many for each thread, and
/// hold at least half of `grain` items. What is computed for an index must not depend on the piece it
/// falls into; then the answer does not depend on `threads`.
/// The first exception a piece throws is thrown again here, after all threads have left the body.
///
/// Threads   the caller's, and helpers that stay for the next call, 1023 at most. A helper that is
///           busy elsewhere is not waited for: bodies may call `parallel_for`, any thread may, and
///           pieces must not wait for one another. Helpers take no signals but those of faults.
///           On Linux they run where the process's first thread may, and keep off the core of whoever
///           calls; one whose cores somebody else sets stays there.
/// Order     each thread begins with a range of its own, the one it had in the call before where it
///           can: its core's cache may still have what the range is about. Then it takes pieces
///           from the ends of other ranges.
/// fork      a child has helpers of its own; one made inside a body must not return from the body
/// Cost      no allocation, once helpers are there; where one piece is all, a call of the body.
///           Threads look out for work for 50 us before they sleep.
void parallel_for(std::size_t count, std::size_t grain, unsigned threads, PieceBody body);

/// Threads that `parallel_for` uses for a request of `threads`.
[[nodiscard]] unsigned thread_count(unsigned threads);

}  // namespace normscope
