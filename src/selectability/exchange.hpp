#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/selectability/probability.hpp>
#include <normscope/selectability/reach.hpp>

namespace normscope::selectability {

/// Calls `visit` for every field.
template <typename Visit>
void each_field(TokenReach& token, const Visit& visit) {
  visit(token.done);
  visit(token.answer);
  visit(token.unbounded);
  visit(token.lower);
  visit(token.upper);
  visit(token.witness);
  visit(token.weights);
  visit(token.unbounded_weights);
  visit(token.unbounded_witness);
  visit(token.runner_up);
  visit(token.only_inside);
}

template <typename Visit>
void each_field(Probability& probability, const Visit& visit) {
  visit(probability.lower);
  visit(probability.upper);
  visit(probability.point);
  visit(probability.tangent);
  visit(probability.weights);
}

/// What `ReachOptions::work` counts for that many products of a point with all tokens in float32.
inline double work_of(const Logits& logits, double products) {
  return products * static_cast<double>(logits.tokens * logits.width) / 8.0;
}

/// This member's part of `items`.
template <typename T>
std::vector<T> own_part(const std::vector<T>& items, const Team& team) {
  const auto at = [&](std::size_t member) {
    return items.begin() + static_cast<std::ptrdiff_t>(team.first_of(member, items.size()));
  };
  return {at(team.rank()), at(team.rank() + 1)};
}

/// Completes in all members those of `values` that `indices` name, where each member has its part of them.
template <typename T>
void exchange(const std::vector<std::size_t>& indices, std::vector<T>& values, const Team& team) {
  if (team.size() == 1) return;
  Packer own;
  for (const std::size_t index : own_part(indices, team)) {
    each_field(values[index], [&](const auto& field) { own.put(field); });
  }
  const std::vector<std::vector<std::byte>> all = gathered(own.bytes(), team);
  for (std::size_t member = 0; member < team.size(); ++member) {
    if (member == team.rank()) continue;
    Unpacker from(all[member]);
    for (std::size_t i = team.first_of(member, indices.size()); i < team.first_of(member + 1, indices.size());
         ++i) {
      each_field(values[indices[i]], [&](auto& field) { from.get(field); });
    }
    from.finish();
  }
}

}  // namespace normscope::selectability
