#pragma once

#include "rotary_scores.hpp"

/// A bound of a head's spread from every distance below some number, one at a time.
namespace normscope::selectability {

/// Of all distances t below `distances`,
///   max over u, v of ± qᵀ(R_t k − z) <= reach,
/// so no spread is more than twice that, whatever z is. Proved by Gram matrices: queries lie in the ellipsoid
/// {q : qᵀ P q <= a²}, and b² P − G_t is positive definite at each t, with
///   G_t = (1+ρ²)(R_t K Kᵀ R_tᵀ + e eᵀ/ρ²),  e = R_t d − z,  reach = a b:
/// one Cholesky factor a distance. P is near the inverse of (1+κ²)(C Cᵀ + c cᵀ/κ²).
/// Source    [Yakubovich 1971], the S-procedure, by which the best κ and ρ lose nothing
struct DistanceBound {
  std::size_t distances = 0;
  double spread = 0.0;        ///< 2 a b, with what rounding may have changed
  double query_square = 0.0;  ///< κ², 0 where c is 0
  double key_square = 0.0;    ///< ρ², 0 where d is 0
  double reach = 0.0;         ///< a b
  Eigen::VectorXd centre{};   ///< z
};

/// Proves the least `spread` it can, within a thousandth, starting from what the `likely` distances need.
/// Requires  distances >= 1, frequencies known
/// Cost      O(distances dim³/3), with 10 times that for each of the likely ones
[[nodiscard]] DistanceBound bound_by_distance(const RotaryScores& scores, std::size_t distances,
                                              const std::vector<std::size_t>& likely);

}  // namespace normscope::selectability
