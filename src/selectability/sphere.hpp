#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lead_oracle.hpp"

/// With eps = 0 a norm only gives points of the sphere, in two dimensions or more (`fold`). A lead there is
/// found by moving outward from a point inside the ball: the points at which a token leads form a convex set,
/// so it leads on the whole segment to any such point outside.
namespace normscope::selectability {

/// The point of the sphere nearest to `point`: without its mean if the norm centres, divided by its length,
/// and inside the ball up to rounding. Zero if nothing remains.
[[nodiscard]] std::vector<double> on_sphere(const Logits& logits, std::span<const double> point);

/// Bound of |u − point| for the nearest point u of the sphere; infinite unless it is negligible.
[[nodiscard]] double distance_to_sphere(const Logits& logits, std::span<const double> point);

/// A lower bound of the lead over all tokens at the point of the sphere nearest to `point`; −infinity if the
/// distance is more than rounding.
[[nodiscard]] double lead_on_sphere(const LeadOracle& oracle, std::size_t token,
                                    std::span<const double> point, unsigned threads);

/// A point of the sphere at which `token` provably leads, searched from `inside`, a point of the ball where
/// it leads: along several directions while it leads, then along the faces reached. Empty if all paths end
/// inside the ball, which proves nothing.
[[nodiscard]] std::optional<std::vector<double>> lift(const LeadOracle& oracle, std::size_t token,
                                                      std::span<const double> inside, unsigned threads);

}  // namespace normscope::selectability
