#pragma once

#include <cstddef>
#include <vector>

#include <normscope/convex/minimum_norm.hpp>

#include "cloud.hpp"
#include "span.hpp"

namespace normscope::selectability {

/// What the hull of a few keys says about one more.
struct Nearest {
  enum class Kind { outside, inside, unclear };
  Kind kind = Kind::unclear;
  /// Unit query from the nearest point of the hull to the key; empty when there is none to try.
  std::vector<double> query{};
  std::vector<convex::Share> weights{};  ///< on rows; the nearest point
  double residual = 0.0;                 ///< its distance from the key, an upper bound
};

/// Where key `place` lies with respect to the hull of the keys `others`. Where the distance is near
/// rounding, it is computed again in twice the precision.
/// Requires  others not empty, without `place`
[[nodiscard]] Nearest nearest(const Cloud& cloud, const Span& span, std::size_t place,
                              const std::vector<std::size_t>& others, double tolerance);

}  // namespace normscope::selectability
