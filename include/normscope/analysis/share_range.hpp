#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <normscope/analysis/ranges.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/models/model.hpp>

namespace normscope::analysis {

/// What bounds a component's part of the stream in every context.
enum class ShareSource {
  none,      ///< nothing that is known: a mixture of experts, or a part of what a norm of the branch divides
  rows,      ///< of a table: it adds one of them
  constant,  ///< it adds the same always
  head,      ///< it averages values, each a number that is read behind a norm
  mlp,       ///< each unit is between the extremes of its activation
  norm       ///< all of its branch: what the norm of the branch's output guarantees
};
[[nodiscard]] ShareSource share_source(const forward::Component& component);

/// The table whose rows an embedding adds; null for other components.
[[nodiscard]] const models::Linear* table_of(const models::Model& model, const forward::Component& component);

/// A proof of one end of an MLP's range. Behind a norm, z_j = c_j + p_j·u with |u| <= 1. Unit j is at most
///   rest + slope (z_j − c_j) + curvature (z_j − c_j)²
/// on the interval of z_j; with a gate z and an input x, a x φ(z) is at most
///   a slope x z + |a| (balance x² + (rest + curvature (z − c)²)/balance)/2,
/// as |x r| <= (balance x² + r²/balance)/2 for r = φ(z) − slope z. The sum over units is a quadratic function
/// h·u + uᵀMu + constant. With λ the multiplier, A = λ − M positive semidefinite and any w, it is at most
///   constant + λ + wᵀAw + |h − 2Aw|,
/// the least of which is attained at 2Aw = h.
struct QuadraticProof {
  std::vector<double> slopes{}, curvatures{}, balances{};  ///< of each unit; without gates no balances
  double multiplier = 0.0;
};

struct ShareRange {
  Interval interval{};
  /// Proofs of the MLP's least and most, of −a for the former; empty where each unit by itself is as good.
  std::optional<QuadraticProof> below{}, above{};
};

/// Bounds of direction·x over everything that a component can add to the stream, x, in any context: of
/// embeddings the least and the most of a row; of a head, whose output is an average of values, the ends of a
/// number that is read behind its norm (`interval`); of an MLP the sum of what each unit can add between the
/// ends of its input, or what quadratic functions of the norm's output bound, or the ends of what its own
/// norm puts out. `typical` is not set.
///
/// Accuracy  proved, with rounding (test: ShareRange.NoContextLeavesIt)
///
/// Errors    as `models::read_weight`
///
/// Cost      two operations for each weight of the component; of MLPs with at most 2³³ units · width², behind
///           a norm with one divisor, about 50 units · width²
[[nodiscard]] std::optional<ShareRange> share_range(const files::Checkpoint& checkpoint,
                                                    const models::Model& model,
                                                    const forward::Component& component,
                                                    std::span<const double> direction, unsigned threads = 0);

}  // namespace normscope::analysis
