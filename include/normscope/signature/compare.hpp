#pragma once

#include <cstddef>
#include <string_view>

#include <normscope/signature/extract.hpp>

namespace normscope::signature {

enum class FinalNorm { layer, rms, none, unknown };

/// "layer", "rms", "none" or "unknown".
[[nodiscard]] std::string_view to_string(FinalNorm norm);

/// What outputs alone reveal about the final norm of their model.
struct Kind {
  FinalNorm norm = FinalNorm::unknown;
  /// Width of the hidden state; 0 where it is not known.
  std::size_t width = 0;
  /// The rank cannot distinguish a LayerNorm of some width from an RMSNorm of one less. If set, the norm was
  /// chosen because its width is a multiple of a larger power of two than the other.
  bool by_width = false;
  std::size_t rows_needed = 0;  ///< to decide whether there is a norm; 0 if there were enough
  Extraction extraction{};      ///< of the fit, if there was one
};

/// The norm behind the rows: their rank is width − 1 after LayerNorm and width after RMSNorm; without a norm
/// no ellipsoid fits.
///
/// Errors    as `extract`, except that too few rows and subspaces that fill the vocabulary are answers
[[nodiscard]] Kind kind_of(const Outputs& outputs, const Subspace& subspace,
                           const ExtractOptions& options = {});

enum class Relation { same, rescaled, fine_tuned, unrelated };

/// "same", "rescaled", "fine-tuned" or "unrelated".
[[nodiscard]] std::string_view to_string(Relation relation);

/// Two ellipses of the same tokens. With A and B the matrices axes · diag(semi_axes):
struct Comparison {
  Relation relation = Relation::unrelated;
  double scale = 1.0;      ///< s of B ≈ s A: the median ratio of lengths
  double outside = 0.0;    ///< square root of the share of |B|² outside the subspace of A: 0 to 1
  double by_chance = 0.0;  ///< `outside` of two random subspaces
  double shape = 0.0;      ///< root mean square of |B v|/|s A'v| − 1 over the axes of A that are known
  double centre = 0.0;  ///< distance of the centres, B's over s, relative to the root mean square semi-axis
  double tolerance = 0.0;  ///< what stated errors explain of `shape`
};

/// same: B equals A within the errors that both state, or 1e-6; rescaled: B equals s A; fine-tuned: the
/// subspaces overlap much more than by chance; unrelated otherwise. Because eps shortens u, an ellipse from
/// outputs is slightly smaller than that of the weights; a scale within 1e-3 of 1 therefore counts as 1.
///
/// Errors    Shape for different numbers of tokens
///
/// Cost      2 tokens rank²
[[nodiscard]] Comparison compare(const Ellipse& a, const Ellipse& b, unsigned threads = 0);

}  // namespace normscope::signature
