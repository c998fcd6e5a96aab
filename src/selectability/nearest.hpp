#pragma once

#include <cstddef>
#include <vector>

#include <normscope/proof/minimum_norm.hpp>

#include "key_set.hpp"

namespace normscope::selectability {

/// The position of a key relative to the hull of a few others.
struct Nearest {
  enum class Kind { outside, inside, unclear };
  Kind kind = Kind::unclear;
  /// Unit query from the nearest point of the hull to the key; empty if there is none.
  std::vector<double> query{};
  std::vector<proof::PointWeight> weights{};  ///< weights of the nearest point, by row
  double residual = 0.0;                      ///< upper bound of its distance from the key
};

/// The position of key `place` relative to the hull of the keys `others`. Distances near rounding are
/// computed again in twice the precision.
///
/// Requires  others not empty, without `place`
[[nodiscard]] Nearest nearest(const KeySet& key_set, const Span& span, std::size_t place,
                              const std::vector<std::size_t>& others, double tolerance);

}  // namespace normscope::selectability
