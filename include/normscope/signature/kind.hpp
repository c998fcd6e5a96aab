#pragma once

#include <string_view>

#include <normscope/signature/extract.hpp>

namespace normscope::signature {

enum class FinalNorm { layer, rms, none, unknown };

/// "layer", "rms", "none" or "unknown".
[[nodiscard]] std::string_view to_string(FinalNorm norm);

/// What outputs alone tell of the end of their model.
struct Kind {
  FinalNorm norm = FinalNorm::unknown;
  /// Of the hidden state; 0 where it is not known.
  std::size_t width = 0;
  /// The subspace does not tell LayerNorm of one width from RMSNorm of one less: the norm is named because
  /// the one width is a multiple of a larger power of two than the other.
  bool by_width = false;
  std::size_t rows_needed = 0;  ///< to tell whether there is a norm; 0 where they were there
  Extraction extraction{};      ///< of the fit, if there was one
};

/// The norm that rows lie behind: their rank is width − 1 behind LayerNorm, width behind RMSNorm; without a
/// norm no ellipsoid fits. Errors    as `extract`, but for rows that are too few and subspaces that fill the
/// vocabulary, which are
///           answers
[[nodiscard]] Kind kind_of(const Outputs& outputs, const Subspace& subspace,
                           const ExtractOptions& options = {});

}  // namespace normscope::signature
