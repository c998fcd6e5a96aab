#include <normscope/core/team.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

#include <normscope/core/error.hpp>

namespace normscope {

const Team& alone() {
  class Alone : public Team {
   public:
    [[nodiscard]] std::size_t rank() const override { return 0; }
    [[nodiscard]] std::size_t size() const override { return 1; }
    void gather(std::span<std::byte> /*bytes*/, std::span<const std::size_t> /*begins*/) const override {}
    [[nodiscard]] bool any(bool value) const override { return value; }
  };
  static const Alone team;
  return team;
}

std::vector<std::vector<std::byte>> gathered(const std::vector<std::byte>& own, const Team& team) {
  std::vector<std::uint64_t> sizes(team.size());
  std::vector<std::size_t> begins(team.size() + 1);
  for (std::size_t member = 0; member < begins.size(); ++member)
    begins[member] = member * sizeof(std::uint64_t);
  sizes[team.rank()] = own.size();
  team.gather(std::as_writable_bytes(std::span(sizes)), begins);
  for (std::size_t member = 0; member < sizes.size(); ++member)
    begins[member + 1] = begins[member] + sizes[member];
  begins[0] = 0;
  std::vector<std::byte> all(begins.back());
  std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(begins[team.rank()]));
  team.gather(all, begins);
  std::vector<std::vector<std::byte>> result;
  for (std::size_t member = 0; member < sizes.size(); ++member) {
    result.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begins[member]),
                        all.begin() + static_cast<std::ptrdiff_t>(begins[member + 1]));
  }
  return result;
}

void together(const Team& team, const std::function<void()>& work) {
  std::optional<Error> cancelled;
  try {
    work();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Cancelled) throw;
    cancelled = error;
  }
  if (team.any(cancelled.has_value())) {
    throw cancelled.value_or(Error(ErrorCode::Cancelled, "another process was interrupted"));
  }
}

}  // namespace normscope
