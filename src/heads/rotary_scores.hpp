#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <Eigen/Core>

#include <normscope/core/eigen/matrix_vector.hpp>

#include "head_maps.hpp"

/// Scores of queries and keys that a rotary embedding rotates by their distance.
namespace normscope::heads {

/// qᵀ R_t k of queries q = C u + c and keys k = K v + d, |u|, |v| <= 1, at distance t. Coordinates 2j and 2j
/// + 1 form pair j, which R_t rotates by t times its frequency; the coordinates after the pairs are not
/// rotated. The head's scale is included in K and d.
struct RotaryScores {
  Eigen::MatrixXd query;            ///< C
  Eigen::VectorXd query_constant;   ///< c
  Eigen::MatrixXd key;              ///< K
  Eigen::VectorXd key_constant;     ///< d
  std::vector<Eigen::Index> order;  ///< coordinate i here is order[i] of the head
  Eigen::Index pairs = 0;
  std::vector<double> frequencies{};  ///< of the pairs; empty if unknown
  /// Exclusive bound of the distances. If the context is unbounded, a search stops here.
  std::size_t distances = 1;
  bool bounded = false;
  double query_lost = 0.0;  ///< bounds the rounding error of q, for any u
  double key_lost = 0.0;

  /// q at u.
  [[nodiscard]] Eigen::VectorXd query_at(const Eigen::VectorXd& u) const {
    return times(query, u) + query_constant;
  }

  [[nodiscard]] Eigen::Index dim() const { return query.rows(); }
  [[nodiscard]] Eigen::Index turning() const { return 2 * pairs; }
  [[nodiscard]] bool knows_frequencies() const { return pairs == 0 || !frequencies.empty(); }
  [[nodiscard]] double query_size() const { return query.norm() + query_constant.norm(); }
  [[nodiscard]] double key_size() const { return key.norm() + key_constant.norm(); }

  /// Rounding error of a difference of two scores at distances up to `farthest`: of the maps, the angles and
  /// products of a head's size.
  [[nodiscard]] double slack(std::size_t farthest) const;

  /// The constant of the keys without the part that shifts all scores alike.
  [[nodiscard]] Eigen::VectorXd turning_constant() const;

  /// Converts to the order of coordinates of the head.
  [[nodiscard]] std::vector<double> in_head_order(const Eigen::VectorXd& values) const;
};

/// R_t x of each column; R_tᵀ x at −t.
[[nodiscard]] Eigen::MatrixXd turned(const RotaryScores& scores, const Eigen::MatrixXd& x, double t);

/// Scores of one query with all keys at some distances: those at distance t lie in [middle − half, middle +
/// half].
struct Ranges {
  Eigen::VectorXd middle;  ///< qᵀ R_t d, with d as `turning_constant`
  Eigen::VectorXd half;    ///< |Kᵀ R_tᵀ q|
};

/// Cosines and sines of the angles of some distances, distances × pairs.
struct Turns {
  Eigen::MatrixXd cosines;
  Eigen::MatrixXd sines;
};

/// The turns at these distances.
[[nodiscard]] Turns turns_at(const RotaryScores& scores, const std::vector<std::size_t>& distances);
/// `turns_at`, kept for other heads that rotate alike: for distances that do not depend on the head.
[[nodiscard]] std::shared_ptr<const Turns> shared_turns_at(const RotaryScores& scores,
                                                           const std::vector<std::size_t>& distances);

/// Replaces column i of x by R_t x, or by R_tᵀ x, at distance i of the turns.
void turn_columns(const Turns& turns, bool back, Eigen::MatrixXd& x);

/// Estimates of the largest eigenvalue of Cᵀ(R_t K Kᵀ R_tᵀ + e_t e_tᵀ)C, from below, and of its eigenvector,
/// at each distance: columns of `points` of length 1. They are from `steps` of Lanczos' iteration.
struct Peaks {
  Eigen::VectorXd values;
  Eigen::MatrixXd points;
};

/// Shapes    query (dim, width), key (dim, any), shifts e_t (dim, distances) and starts of the iteration
///           (width, distances), or either without columns
///
/// Cost      three products of dim × dim × distances a step
[[nodiscard]] Peaks peaks_at(const Eigen::MatrixXd& query, const Eigen::MatrixXd& key, const Turns& turns,
                             int steps, const Eigen::MatrixXd& shifts = {},
                             const Eigen::MatrixXd& starts = {});

/// A set of distances with precomputed rotations, which heads that rotate alike share.
class Sweep {
 public:
  Sweep(const RotaryScores& scores, std::vector<std::size_t> distances);

  [[nodiscard]] const std::vector<std::size_t>& distances() const { return distances_; }
  /// Cost  O(distances · dim²)
  [[nodiscard]] Ranges of(const Eigen::VectorXd& query) const;
  /// `of` to the accuracy of float32, in half the time.
  [[nodiscard]] Ranges near(const Eigen::VectorXd& query) const;

 private:
  template <typename T>
  [[nodiscard]] Ranges computed(const Eigen::VectorXd& query) const;

  const RotaryScores& scores_;
  std::vector<std::size_t> distances_;
  Eigen::VectorXd constant_;
  std::shared_ptr<const Turns> turns_;
};

/// Every distance in [first, end).
[[nodiscard]] std::vector<std::size_t> all_distances(std::size_t first, std::size_t end);
/// About `count` distances of [first, end): all short ones, then progressively sparser, including the last.
[[nodiscard]] std::vector<std::size_t> some_distances(std::size_t first, std::size_t end, std::size_t count);
/// Half as many of these distances, and as many more spread evenly.
[[nodiscard]] std::vector<std::size_t> scattered_distances(std::size_t first, std::size_t end,
                                                           std::size_t count);

// Bounds a head's spread over all distances below a limit, by a proof for each distance.

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
  double spread = 0.0;                 ///< 2 a b, including rounding
  double query_square = 0.0;           ///< κ², 0 where c is 0
  double key_square = 0.0;             ///< ρ², 0 where d is 0
  double reach = 0.0;                  ///< a b
  Eigen::VectorXd centre{};            ///< z
  std::vector<std::size_t> hardest{};  ///< a few that needed the most, the hardest first
};

/// Proves the smallest `spread` it can, to within a factor of 1.001, starting from the bound needed at the
/// `likely` distances.
///
/// Requires  distances >= 1, frequencies known
///
/// Cost      O(distances dim³/3), in float32 where its rounding allows, and 10 times that for each likely
///           distance
[[nodiscard]] DistanceBound bound_by_distance(const RotaryScores& scores, std::size_t distances,
                                              const std::vector<std::size_t>& likely);

}  // namespace normscope::heads
