#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <normscope/certificates/model_heads.hpp>

#include "precise.hpp"

/// Queries C u + c and keys K v + d of an attention head, |u|, |v| <= 1, recomputed from its weights.
namespace normscope::certificates {

struct HeadSide {
  Matrix map{};           ///< head_dim × width of the ball
  Column constant{};      ///< head_dim
  Matrix gram{};          ///< map mapᵀ
  double map_size = 0.0;  ///< Frobenius norm
  double constant_size = 0.0;
  /// For a head with its own norm: Π'(W x + b) for rows x = r G Π u + β, as a map of u, and N' eps'.
  bool has_own_norm = false;
  bool own_centers = false;
  Matrix input{};
  Column input_constant{};
  double input_eps = 0.0;

  [[nodiscard]] Column at(std::span<const double> point) const;
  [[nodiscard]] double size() const { return map_size + constant_size; }
  /// Whether the map is onto, proved by a factorization of its Gram matrix.
  [[nodiscard]] bool has_full_rank() const;
  /// Whether Π'(W x + b) fills a ball of this radius around 0.
  [[nodiscard]] bool fills(double radius) const;
};

/// The effect of the head's rotation on scores; the scale and the score factor are included in the keys.
struct HeadScores {
  HeadSide query{}, key{};
  std::size_t dim = 0;
  std::vector<std::size_t> first{}, second{};  ///< the coordinates of each pair that turns
  std::vector<double> frequencies{};           ///< frequencies of those pairs; empty if unknown
  std::vector<bool> turning{};                 ///< for each coordinate

  [[nodiscard]] std::size_t pairs() const { return first.size(); }
  /// d without its part on coordinates that do not rotate, which shifts all scores alike.
  [[nodiscard]] Column moving_constant() const;
  /// R_t x, or R_tᵀ x if `backwards`, with an error of at most `angle_error` times its length.
  [[nodiscard]] Column turned(Column x, double distance, bool backwards = false) const;
  /// Error of the library's cosines and sines for an angle computed in twice the precision.
  static constexpr double angle_error = 4.0 * 0x1p-53;
  /// The score of a query and the key at this point.
  [[nodiscard]] DoubleDouble score(const Column& query, std::span<const double> key_point,
                                   std::size_t distance) const;
};

/// With every projection, or without.
[[nodiscard]] HeadScores scores_of(const AttentionHead& head, bool projects);

/// An upper bound of |L(C u + c)| over the ball, by the multiplier of |u|² <= 1, where C Cᵀ = gram of trace
/// map_size² and m = L c:
///   |L(C u + c)|² <= μ + μ mᵀ(μI − H)⁻¹m,  H = L C Cᵀ Lᵀ, where μI − H is positive definite.
/// Never more than |m| + sqrt(tr H), for every μ.
[[nodiscard]] double largest_length(const Matrix& stacked, const HeadSide& side, const Column& constant,
                                    double multiplier);

}  // namespace normscope::certificates
