#include <normscope/signature/kind.hpp>

#include <array>

namespace normscope::signature {
namespace {

/// The largest power of two that divides the width.
std::size_t roundness(std::size_t width) { return width & (~width + 1); }

}  // namespace

std::string_view to_string(FinalNorm norm) {
  constexpr std::array<std::string_view, 4> names{"layer", "rms", "none", "unknown"};
  return names[static_cast<std::size_t>(norm)];
}

Kind kind_of(const Outputs& outputs, const Subspace& subspace, const ExtractOptions& options) {
  Kind result;
  if (subspace.rank == 0 || subspace.rank + 1 >= subspace.tokens) return result;
  // If the rank is limited by the number of rows, it is unknown.
  if (!subspace.fills) {
    const bool is_layer = roundness(subspace.rank + 1) > roundness(subspace.rank);
    result.width = is_layer ? subspace.rank + 1 : subspace.rank;
    result.norm = is_layer ? FinalNorm::layer : FinalNorm::rms;
    result.by_width = true;
  }
  if (outputs.rows() < unknowns(subspace.rank) + subspace.rank) {
    result.rows_needed = 2 * unknowns(subspace.rank);
    result.norm = FinalNorm::unknown;
    return result;
  }
  result.extraction = extract(outputs, subspace, options);
  if (!result.extraction.ellipse) {
    result.norm = FinalNorm::none;
    result.by_width = false;
    result.width = subspace.rank;
  }
  return result;
}

}  // namespace normscope::signature
