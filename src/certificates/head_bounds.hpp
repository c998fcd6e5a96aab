#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fields.hpp"
#include "head_scores.hpp"

/// Bounds of a head's spread, worked out from what a result gives as their proof. A spread is what the scores
/// of two keys differ by under one query.
namespace normscope::certificates {

/// At least the spread of any query with two keys that both stand at distance 0: 2 |Kᵀq| at most.
[[nodiscard]] double spread_at_zero_at_most(const HeadScores& scores, double multiplier);
/// 2 |Kᵀq| of the query of that point, from below and from above.
struct Interval {
  double low = 0.0;
  double high = 0.0;
};
[[nodiscard]] Interval spread_at_zero(const HeadScores& scores, std::span<const double> query_point);

/// Weights on pairs as a result has them: w, ε, N, F and multipliers.
struct PairWeights {
  std::size_t distances = 0;  ///< 0 for every distance
  std::vector<double> weights{}, turns{};
  std::vector<std::size_t> still{};
  std::vector<double> factor{};
  double query_multiplier = 0.0;
  double key_multiplier = 0.0;
  double spread = 0.0;
};
/// Errors    Format
[[nodiscard]] PairWeights read_weights(const Field& field, const HeadScores& scores);
/// At least every spread that these weights bound: 2 max|q'| max|k'|, over all queries or of that one alone;
/// infinity where they bound none.
[[nodiscard]] double spread_by_weights(const HeadScores& scores, const PairWeights& weights,
                                       const Column* query = nullptr);

/// One distance after another, as a result has it: whether |qᵀ(R_t k − z)| <= reach at each below
/// `distances`, and what is left out where κ² or ρ² is 0.
struct DistanceBounds {
  std::size_t distances = 0;
  double query_square = 0.0;
  double key_square = 0.0;
  double reach = 0.0;
  std::vector<double> centre{};
  double spread = 0.0;
};
/// At least every spread at distances below `distances`; infinity where they bound none.
[[nodiscard]] double spread_by_distance(const HeadScores& scores, const DistanceBounds& bounds);

/// At least the spread of that query with any two keys at distances below `distances`.
[[nodiscard]] double widest_context(const HeadScores& scores, const Column& query, std::size_t distances);

/// Two keys of one context, and its weight λ among others.
struct Context {
  double share = 1.0;
  std::vector<double> high{}, low{};
  std::size_t high_distance = 0;
  std::size_t low_distance = 0;
};
/// At most the widest context of every query: cᵀg − |Cᵀg| for g = Σ λ (R k_high − R k_low)/Σ λ, where points
/// v stand for fill v/|v|.
[[nodiscard]] double unavoidable_spread(const HeadScores& scores, const std::vector<Context>& contexts,
                                        double fill);

}  // namespace normscope::certificates
