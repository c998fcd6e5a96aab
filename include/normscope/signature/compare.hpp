#pragma once

#include <string_view>

#include <normscope/signature/ellipse.hpp>

namespace normscope::signature {

enum class Relation { same, rescaled, fine_tuned, unrelated };

/// "same", "rescaled", "fine-tuned" or "unrelated".
[[nodiscard]] std::string_view to_string(Relation relation);

/// Two ellipses of the same tokens. With A and B the matrices axes · diag(semi_axes):
struct Comparison {
  Relation relation = Relation::unrelated;
  double scale = 1.0;      ///< s of B ≈ s A: the middle of the ratios of lengths
  double outside = 0.0;    ///< part of |B|² outside the subspace of A, its root: 0 to 1
  double by_chance = 0.0;  ///< `outside` of two subspaces that have nothing to do with each other
  double shape = 0.0;      ///< root mean square of |B v|/|s A'v| − 1 over the axes of A that are known
  double centre = 0.0;  ///< distance of the centres, B's over s, relative to the root mean square semi-axis
  double tolerance = 0.0;  ///< what stated errors explain of `shape`
};

/// same: B is A within the errors that both state, or 1e-6; rescaled: s A is; fine-tuned: the subspaces
/// overlap much more than by chance; unrelated otherwise. An ellipse from outputs is shorter by what eps
/// takes from |u| on average: a scale within 1e-3 of 1 is none. Errors    Shape for different numbers of
/// tokens Cost      2 tokens rank²
[[nodiscard]] Comparison compare(const Ellipse& a, const Ellipse& b, unsigned threads = 0);

}  // namespace normscope::signature
