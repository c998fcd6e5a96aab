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
  /// Of the hidden state; 0 where it is not known.
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

}  // namespace normscope::signature
