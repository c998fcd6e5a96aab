#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "probes.hpp"

namespace normscope::rewrite {

/// What one pass over a row W_i gives.
struct RowSums {
  double exact = 0.0;  ///< Σ (W_ij g_j)²
  double error = 0.0;  ///< Σ (stored − W_ij g_j)²
  Probe old_output{};
  Probe exact_output{};
  Probe stored_output{};
  bool is_regular = true;  ///< whether every product is a normal number of the dtype, or W_ij is 0
};

/// The inputs tried, probe by probe (probe_count × width each), and the gain.
struct RowInputs {
  const double* gain = nullptr;
  const double* old_probes = nullptr;
  const double* new_probes = nullptr;
  std::size_t width = 0;  ///< a multiple of `row_multiple`; what is added to a row is 0 everywhere
};
inline constexpr std::size_t row_multiple = 16;

/// Multiplies a row of bfloat16 (its bits) or float32 by the gains and rounds it to the same format, ties to
/// even; `stored` gets the result. Where the row is not regular, `stored` and the sums mean nothing.
///
/// Shapes    row, stored (inputs.width)
/// Accuracy  stored values are those of `encode`; sums have the rounding errors of float64, in an order that
///           depends on the instruction set (test: Rewrite.RowsAreRoundedAsTheDtypeSays)
[[nodiscard]] RowSums scale_row(const std::uint16_t* row, const RowInputs& inputs, std::uint16_t* stored);
[[nodiscard]] RowSums scale_row(const float* row, const RowInputs& inputs, float* stored);

}  // namespace normscope::rewrite
