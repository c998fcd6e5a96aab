#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>

namespace normscope::signature {

/// Divides rows into a fixed number of slices. Each slice is summed for itself and the sums are added in
/// order, so results depend neither on threads nor on the number of members of a team, each of which has
/// consecutive slices.
class RowSlices {
 public:
  static constexpr std::size_t count = 64;
  struct Block {
    std::size_t slice = 0;  ///< counted from the member's first
    std::size_t first = 0;  ///< row
    std::size_t rows = 0;
  };

  /// Requires  at most `count` members; `team` outlives this
  RowSlices(std::size_t rows, const Team& team) : rows_(rows), team_(&team) {}

  [[nodiscard]] std::size_t rows() const { return rows_; }
  /// Of this member: its slices, and its rows from `begin` to `end`.
  [[nodiscard]] std::size_t own_slices() const { return first_slice(rank() + 1) - first_slice(rank()); }
  [[nodiscard]] std::size_t begin() const { return row_of(first_slice(rank())); }
  [[nodiscard]] std::size_t end() const { return row_of(first_slice(rank() + 1)); }
  /// The member's rows in blocks of about `size`, at most 3/2 of it, none of which is in two slices.
  [[nodiscard]] std::vector<Block> blocks(std::size_t size) const;

  /// Sum over all slices of all members.
  ///
  /// Shapes    of_slices[own slice] (entries), each of the length of `result`
  void sum(const std::vector<std::vector<double>>& of_slices, std::span<double> result) const;

  /// Sends a value of every row to all members: before, each has those of its own rows; after, of all rows.
  ///
  /// Requires  of_rows.size() == rows()
  template <typename T>
  void gather(std::vector<T>& of_rows) const {
    complete(std::as_writable_bytes(std::span(of_rows)),
             [&](std::size_t slice) { return row_of(slice) * sizeof(T); });
  }

 private:
  /// Completes `bytes` in all members, in which a slice begins at `place(slice)`.
  template <typename Place>
  void complete(std::span<std::byte> bytes, const Place& place) const {
    std::vector<std::size_t> begins(team_->size() + 1);
    for (std::size_t member = 0; member < begins.size(); ++member)
      begins[member] = place(first_slice(member));
    team_->gather(bytes, begins);
  }

  [[nodiscard]] std::size_t rank() const { return team_->rank(); }
  [[nodiscard]] std::size_t first_slice(std::size_t member) const { return team_->first_of(member, count); }
  [[nodiscard]] std::size_t row_of(std::size_t slice) const { return rows_ * slice / count; }

  std::size_t rows_;
  const Team* team_;
};

}  // namespace normscope::signature
