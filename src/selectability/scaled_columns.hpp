#pragma once

#include <optional>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/selectability/select.hpp>

namespace normscope::selectability {

/// Keys whose columns are each divided by a power of two; constant columns are set to 0. A query for the
/// scaled keys becomes one for the original keys when its entries are divided by the same powers, so scaling
/// does not change which keys are selectable.
struct ScaledColumns {
  std::vector<int> exponents{};
  std::vector<double> values{};
  bool is_exact = true;  ///< whether all divisions were exact
  std::size_t rows = 0;
  std::size_t width = 0;

  [[nodiscard]] MatrixView<const double> view() const { return {values.data(), rows, width}; }
  /// Converts a verdict on the scaled keys to the original keys; a verdict that does not carry over becomes
  /// undecided.
  [[nodiscard]] Selection of_given(MatrixView<const double> keys, Selection selection,
                                   unsigned threads) const;
};

/// The keys in scaled columns, if the extents of columns are far apart or a constant column is far larger
/// than the others.
[[nodiscard]] std::optional<ScaledColumns> scaled_columns(MatrixView<const double> keys);

}  // namespace normscope::selectability
