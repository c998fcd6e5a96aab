#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "field.hpp"

/// With eps = 0 a norm gives points of the sphere only. In a space of one dimension these are two, in others
/// a lead is found on the sphere by going on from a point inside: the points at which a token leads are
/// convex, so that it leads on the whole way to any one outside.
namespace normscope::selectability {

/// The point of the sphere next to `point`: without its mean where the norm centers, over its length, and a
/// rounding within the ball. Zero where nothing is left of it.
[[nodiscard]] std::vector<double> on_sphere(const Logits& logits, std::span<const double> point);

/// How far |u − point| may be for the u of the sphere next to it; infinity unless that is as good as nothing.
[[nodiscard]] double distance_to_sphere(const Logits& logits, std::span<const double> point);

/// A lower bound on the lead over everybody at the point of the sphere next to `point`; −infinity where there
/// is none as near as rounding.
[[nodiscard]] double lead_on_sphere(const Field& field, std::size_t token, std::span<const double> point,
                                    unsigned threads);

/// A point of the sphere where `token` leads with a proof, from `inside`, where it leads within the ball:
/// along several directions as far as it leads, then along the faces met there. None where all of them end
/// inside the ball, which proves nothing.
[[nodiscard]] std::optional<std::vector<double>> lift(const Field& field, std::size_t token,
                                                      std::span<const double> inside, unsigned threads);

/// The two points there are in a space of one dimension.
/// Requires  logits.dimension() == 1
[[nodiscard]] std::array<std::vector<double>, 2> two_points(const Logits& logits);

/// An upper bound on the lead over `other` at a point of the sphere that is rounded to `point`.
[[nodiscard]] double lead_at_most(const Field& field, std::size_t token, std::span<const double> point,
                                  std::size_t other);

/// The same over both of them, each with the token of `ends` that is named for it; infinity where it names
/// none.
[[nodiscard]] double upper_bound_at_two_points(const Field& field, std::size_t token,
                                               const std::vector<std::size_t>& ends);

}  // namespace normscope::selectability
