#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <normscope/core/error.hpp>

namespace normscope {

/// Callback for reporting progress and cancelling work. It is called from one thread at a time, and returns
/// false to cancel.
class Progress {
 public:
  using Callback = std::function<bool(std::string_view what, std::size_t done, std::size_t total)>;

  Progress() = default;
  explicit Progress(Callback callback) : callback_(std::move(callback)) {}

  /// Reports `done` of `total` steps of `what`.
  ///
  /// Errors    Cancelled when the callback asks to stop
  void operator()(std::string_view what, std::size_t done, std::size_t total) const {
    if (callback_ && !callback_(what, done, total)) {
      throw Error(ErrorCode::Cancelled, "cancelled");
    }
  }

 private:
  Callback callback_;
};

/// A reference to the callable that `parallel_for` calls as `body(begin, end)`; it does not own it.
class PieceBody {
 public:
  template <typename Callable, typename = std::enable_if_t<!std::is_same_v<
                                   std::remove_cv_t<std::remove_reference_t<Callable>>, PieceBody>>>
  // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload): implicit, for lambdas
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

/// Calls `body(begin, end)` on consecutive pieces of [0, count), on up to `threads` threads (0: all that the
/// machine has). Pieces are as equal as possible, the same number for each thread, and contain at least half
/// of `grain` items. If the computation for an index does not depend on its piece, the result does not depend
/// on `threads`. Of the exceptions thrown by pieces that of the first piece in order is rethrown here, after
/// all threads have left the body; pieces behind it may be left out.
///
/// Threads   the caller's, and up to 1023 workers that are kept for later calls. A call does not wait for
///           workers that are busy elsewhere: bodies may call `parallel_for`, any thread may, and pieces must
///           not wait for one another. Workers block all signals except faults.
///
/// Order     each thread begins with a range of its own, if possible that of its previous call, whose data
///           its cache may still have; then it takes pieces from the ends of other ranges
///
/// Forks     a child process has workers of its own; a child forked inside a body must not return from the
///           body
///
/// Cost      no allocation once the workers exist; a single piece is a plain call of the body. Idle threads
///           spin for 50 us before they sleep.
void parallel_for(std::size_t count, std::size_t grain, unsigned threads, PieceBody body);

/// Number of threads that `parallel_for` uses for a request of `threads`.
[[nodiscard]] unsigned thread_count(unsigned threads);

/// Ways of a core's first-level data cache: how many lines it holds of those that are a multiple of 4 KB
/// apart; 0 where the system does not tell.
[[nodiscard]] std::size_t first_cache_ways();

/// Processes that compute one result together. All members call the functions of a team in the same order,
/// and what they then compute from the same numbers is the same in all.
///
/// Errors    none of its own: a member that cannot go on ends the whole team
class Team {
 public:
  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  virtual ~Team() = default;

  [[nodiscard]] virtual std::size_t rank() const = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
  [[nodiscard]] bool is_first() const { return rank() == 0; }

  /// Completes `bytes` in all members. The member of rank r has written those from begins[r] to
  /// begins[r + 1].
  virtual void gather(std::span<std::byte> bytes, std::span<const std::size_t> begins) const = 0;
  /// Whether `value` is true in any member.
  [[nodiscard]] virtual bool any(bool value) const = 0;

  /// Index of the first item of `member`, where `count` items are divided into one consecutive part for each
  /// member; `count` for member = size().
  [[nodiscard]] std::size_t first_of(std::size_t member, std::size_t count) const {
    return count * member / size();
  }
};

/// The team of this process alone.
[[nodiscard]] const Team& alone();

/// What each member has, in all members, in the order of their ranks.
[[nodiscard]] std::vector<std::vector<std::byte>> gathered(const std::vector<std::byte>& own,
                                                           const Team& team);

/// Calls `work` in each member, where it may be cancelled, for example by a signal that only one of them got.
///
/// Errors    Cancelled in all members, after all have done their work, if it was cancelled in one; others of
///           `work`
void together(const Team& team, const std::function<void()>& work);

}  // namespace normscope
