#pragma once

#include <cstddef>
#include <span>

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
};

/// The team of this process alone.
[[nodiscard]] const Team& alone();

}  // namespace normscope
