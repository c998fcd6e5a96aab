#pragma once

#include <array>
#include <cstddef>

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

/// A format of fewer digits than float64.
struct Digits {
  int dropped = 0;        ///< bits of float64's mantissa that it does not have
  double smallest = 0.0;  ///< normal number
  double largest = 0.0;
};

/// The inputs tried, probe by probe (probe_count × width each), and the gain.
struct RowInputs {
  const double* gain = nullptr;
  const double* old_probes = nullptr;
  const double* new_probes = nullptr;
  std::size_t width = 0;  ///< a multiple of `row_multiple`; what is added to a row is 0 everywhere
};
inline constexpr std::size_t row_multiple = 16;

/// Multiplies a row by the gains and rounds it, ties to even; `stored` gets the result. Where the row is not
/// regular, `stored` and the sums mean nothing.
/// Accuracy  stored values are those of `encode`; sums have the rounding errors of float64, in an order that
///           depends on the instruction set (test: Rewrite.RowsAreRoundedAsTheDtypeSays)
[[nodiscard]] RowSums scale_row(const double* row, const RowInputs& inputs, const Digits& digits,
                                float* stored);

}  // namespace normscope::rewrite
