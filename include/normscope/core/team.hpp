#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace normscope {

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
