#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <normscope/analysis/norm_reading.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/view.hpp>

/// The price of freezing a norm's divisor s, for every set of removed components at once.
///
/// If the components of a set S are removed, u becomes u + Σ_S d_k and s becomes s_S. What is left of any
/// logit behind the norm, without its constant, is then s/s_S times what freezing predicts. s_S² is a
/// quadratic form of the set's indicator, with the Gram matrix of u and the d_k.
namespace normscope::analysis {

/// A set of components and the number that it attains; infinite if removing it leaves nothing but rounding.
struct AttainedSet {
  std::vector<std::size_t> removed{};  ///< indices of components, ascending
  double value = 0.0;
};

/// How a bound is proved.
enum class SubsetProof {
  every_set,  ///< each set was tried, or excluded by a bound of sets that contain the same components
  relaxation  ///< a convex function below, or a concave one above
};

/// A proof of a bound of f(z) = |u + Σ z_k d_k|² over z in {0, 1}ᴷ with at most n ones. With
/// D = diag(diagonal), G the Gram matrix of the d_k and g_k = u·d_k,
///   f(z) = |u|² + 2gᵀz + diagonalᵀz + zᵀ(G − D)z
/// for such z. If G − D is positive semidefinite, its tangent at `point` is below f; if D − G is, above. A
/// tangent is linear: its extreme takes the n best coordinates.
struct Relaxation {
  std::vector<double> diagonal{};  ///< (components)
  std::vector<double> point{};     ///< (components), in [0, 1], with a sum of at most n
};

/// Over all sets of at most `removed` components.
struct SubsetBound {
  std::size_t removed = 0;
  SubsetProof proof = SubsetProof::every_set;
  /// Bounds of s/s_S, what is left of a logit over what freezing predicts.
  double least = 0.0, most = infinity;
  AttainedSet attained_least{}, attained_most{};
  /// Bounds of the price of freezing in the reading, v·(u + Σ_S d_k)(1/s_S − 1/s).
  double least_price = -infinity, most_price = infinity;
  AttainedSet attained_least_price{}, attained_most_price{};
  /// The bounds of s_S² from below and from above that prove `most` and `least`, where `proof` is a
  /// relaxation.
  std::optional<Relaxation> below{}, above{};
};

struct SubsetOptions {
  std::size_t most_removed = 10;
  double most_work = 1e8;  ///< components that the search among sets of one size may look at
};

/// Components of which every two are multiplied; of more, there are no bounds.
inline constexpr std::size_t most_bounded = 4096;

/// One bound for each number of removed components, from 1 on; none of more than `most_bounded` components.
///
/// Shapes    changes (components, width): what removing each adds to the row
///
/// Accuracy  proved, with rounding (tests: Subsets.HoldForEverySet, Subsets.HoldAgainstAttack); those of
///           `every_set` are attained up to rounding
///
/// Errors    Cancelled
///
/// Threads   as in `parallel_for`; no result depends on them
///
/// Cost      components² · width, a few times `most_work`, and components³
[[nodiscard]] std::vector<SubsetBound> bound_subsets(const NormReading& reading,
                                                     MatrixView<const double> changes,
                                                     const SubsetOptions& options = {},
                                                     const Progress& progress = {}, unsigned threads = 0);

}  // namespace normscope::analysis
