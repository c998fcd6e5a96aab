#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "document.hpp"
#include "head_scores.hpp"

/// Bounds of a head's spread, recomputed from the certificate of a result. A spread is the difference of two
/// keys' scores under one query.
namespace normscope::certificates {

/// An upper bound of the spread over all queries and two keys at distance 0: the largest 2 |Kᵀq|.
[[nodiscard]] double spread_at_zero_at_most(const HeadScores& scores, double multiplier);
/// 2 |Kᵀq| for the query of that point, from below and from above.
struct Interval {
  double low = 0.0;
  double high = 0.0;
};
[[nodiscard]] Interval spread_at_zero(const HeadScores& scores, std::span<const double> query_point);

/// Weights on pairs as stated in a result: w, ε, N, F and multipliers.
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
/// An upper bound of the spread from these weights, 2 max|q'| max|k'|, over all queries or for one query;
/// infinite if they give none.
[[nodiscard]] double spread_by_weights(const HeadScores& scores, const PairWeights& weights,
                                       const Column* query = nullptr);

/// The bound over distances one by one, as stated in a result: |qᵀ(R_t k − z)| <= reach at each distance
/// below `distances`. If κ² or ρ² is 0, the corresponding constant is left out of `reach`, and what it adds
/// to scores is bounded by its length.
struct DistanceBounds {
  std::size_t distances = 0;
  double query_square = 0.0;
  double key_square = 0.0;
  double reach = 0.0;
  std::vector<double> centre{};
  double spread = 0.0;
};
/// An upper bound of the spread at distances below `distances`; infinite if the certificate gives none.
[[nodiscard]] double spread_by_distance(const HeadScores& scores, const DistanceBounds& bounds);

/// An upper bound of the spread of that query over two keys at distances below `distances`.
[[nodiscard]] double widest_context(const HeadScores& scores, const Column& query, std::size_t distances);

/// Two keys of one context, and the weight λ of the context.
struct Context {
  double share = 1.0;
  std::vector<double> high{}, low{};
  std::size_t high_distance = 0;
  std::size_t low_distance = 0;
};
/// A lower bound of the widest context of every query: cᵀg − |Cᵀg| for g = Σ λ (R k_high − R k_low)/Σ λ,
/// where a point v stands for fill v/|v|.
[[nodiscard]] double unavoidable_spread(const HeadScores& scores, const std::vector<Context>& contexts,
                                        double fill);

}  // namespace normscope::certificates
