#pragma once

#include <optional>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/selectability/select.hpp>

namespace normscope::selectability {

/// Keys whose columns are each divided by a power of two, 0 in columns that are constant. A query for them is
/// one for the keys as given, its entries divided by the same powers: which keys are selectable does not
/// change, and what is found in columns of like extent holds in columns of any.
struct ScaledColumns {
  std::vector<int> exponents{};
  std::vector<double> values{};
  bool is_exact = true;  ///< whether no division rounded
  std::size_t rows = 0;
  std::size_t width = 0;

  [[nodiscard]] MatrixView<const double> view() const { return {values.data(), rows, width}; }
  /// What was found of the scaled keys, as of those given; what does not carry over becomes undecided.
  [[nodiscard]] Selection of_given(MatrixView<const double> keys, Selection selection,
                                   unsigned threads) const;
};

/// The keys in scaled columns, where the extents of columns are far apart or a constant column is far larger.
[[nodiscard]] std::optional<ScaledColumns> scaled_columns(MatrixView<const double> keys);

}  // namespace normscope::selectability
