#pragma once

#include <vector>

#include "rotary_scores.hpp"

/// Bounds a head's spread over all distances at once, by weights on the rotating pairs.
namespace normscope::heads {

/// Rotations preserve the length of each pair. For weights w > 0 and any invertible F on the coordinates that
/// do not rotate (N),
///   qᵀ R_t k <= |q'| |k'|,  q' = (F q_N, √w_j q_j),  k' = (F⁻ᵀ k_N, k_j/√w_j),
/// at every t, so a spread is at most 2 max|q'| max|k'|: two trust-region problems. The constant of k_N
/// shifts all scores alike and is left out.
///
/// If distances are below n, a pair that rotates by at most φ = (n − 1) θ_j over the context (a slow pair)
/// may be moved to N at its middle angle, with the remainder kept as one more pair: |R_t − R_mid| <= ε = 2
/// sin(φ/4), so √ε q_j and √ε k_j replace q_j and k_j there.
class RotaryWeights {
 public:
  /// Weights for which the bound is near its minimum. `slowest_turn`: pairs with φ up to this angle are slow;
  /// 0 gives a bound over every distance, independent of the frequencies.
  ///
  /// Formula   log(max|q'|² max|k'|²) is convex in log w. The multipliers of a smoothed maximum, the Schatten
  ///           norm of increasing order p, give the ratio of a block's contributions on both sides.
  ///
  /// Cost      O(20 dim³)
  RotaryWeights(const RotaryScores& scores, double slowest_turn);

  /// A proved bound on the difference of two keys' scores under any query, including rounding.
  [[nodiscard]] double spread() const { return spread_; }
  /// The query, as a point u of the ball, for which |q'| is smallest, and the bound of its spread.
  struct Query {
    Eigen::VectorXd point;
    double spread = 0.0;
  };
  [[nodiscard]] Query most_uniform() const;
  /// How much the spread of a query can grow per unit of length by which its point moves, from above, for
  /// queries that are the image of a ball under `map`.
  [[nodiscard]] double sensitivity(const Eigen::MatrixXd& map) const;

  /// The certificate, in the head's order of coordinates: valid for distances below this, 0 for every
  /// distance.
  [[nodiscard]] WeightProof proof(std::size_t distances) const;

 private:
  /// q' or k' as an affine map of the ball.
  struct Stacked {
    Eigen::MatrixXd map;
    Eigen::VectorXd constant;
    double lost = 0.0;  ///< bounds the rounding of what the map and constant give
  };
  struct Shares;
  struct Smoothed;

  [[nodiscard]] Stacked stacked(const Eigen::MatrixXd& map, const Eigen::VectorXd& constant,
                                const Eigen::MatrixXd& on_still, bool of_keys) const;
  [[nodiscard]] Stacked queries() const;
  [[nodiscard]] Stacked keys() const;
  void balance();
  void improve();
  void prove();

  const RotaryScores& scores_;
  Eigen::MatrixXd key_map_;       ///< K with slow pairs at their middle angle
  Eigen::VectorXd key_constant_;  ///< d, likewise
  std::vector<bool> slow_;
  std::vector<Eigen::Index> still_;  ///< coordinates of N, pairs first
  Eigen::MatrixXd factor_;           ///< F
  Eigen::MatrixXd inverse_;          ///< F⁻ᵀ, to rounding
  Eigen::VectorXd weights_;
  Eigen::VectorXd turns_;
  double query_multiplier_ = 0.0;
  double key_multiplier_ = 0.0;
  double key_length_ = 0.0;
  double slack_ = 0.0;
  double spread_ = 0.0;
};

}  // namespace normscope::heads
