#pragma once

#include "rotary_scores.hpp"

/// Bounds a head's spread over all distances below a limit, by a proof for each distance.
namespace normscope::heads {

/// For every distance t below `distances`,
///   max over u, v of ± qᵀ(R_t k − z) <= reach,
/// so no spread exceeds twice `reach`, whatever z is. The proof uses Gram matrices: queries lie in the
/// ellipsoid {q : qᵀ P q <= a²}, and b² P − G_t is positive definite at each t, with
///   G_t = (1+ρ²)(R_t K Kᵀ R_tᵀ + e eᵀ/ρ²),  e = R_t d − z,  reach = a b:
/// It takes one Cholesky factorization per distance. P is close to the inverse of (1+κ²)(C Cᵀ + c cᵀ/κ²).
///
/// Source    [Yakubovich 1971], the S-procedure, which is lossless at the best κ and ρ
struct DistanceBound {
  std::size_t distances = 0;
  double spread = 0.0;        ///< 2 a b, including rounding
  double query_square = 0.0;  ///< κ², 0 where c is 0
  double key_square = 0.0;    ///< ρ², 0 where d is 0
  double reach = 0.0;         ///< a b
  Eigen::VectorXd centre{};   ///< z
};

/// Proves the smallest `spread` it can, to within a factor of 1.001, starting from the bound needed at the
/// `likely` distances.
///
/// Requires  distances >= 1, frequencies known
///
/// Cost      O(distances dim³/3), and 10 times that for each likely distance
[[nodiscard]] DistanceBound bound_by_distance(const RotaryScores& scores, std::size_t distances,
                                              const std::vector<std::size_t>& likely);

}  // namespace normscope::heads
