#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <normscope/analysis/attribution.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/decoder.hpp>

namespace normscope::analysis {

/// Means of the columns, one for each feature.
[[nodiscard]] std::vector<double> column_means(MatrixView<const double> rows);

/// Tells rows apart that differ in any bit.
struct RowsHash {
  explicit RowsHash(MatrixView<const double> rows);

  std::uint64_t all = 0;
  std::uint64_t last = 0;  ///< of the last row alone
};

/// What the runs of a model without components need of its first pass.
struct FirstPass {
  std::span<const std::size_t> context{};           ///< up to the position that is read
  std::vector<std::vector<double>> entered{};       ///< the rows that entered each norm
  std::vector<RowsHash> computed{};                 ///< of what each component computes
  std::vector<std::vector<double>> means{};         ///< over the positions, of the same; if they are needed
  std::vector<std::vector<double>> replacements{};  ///< of what each component adds to the stream
};

/// Fills in what runs of the model tell, within the budget: the circuit's and the components' `rerun`, the
/// path sums of the latter, and `check`.
void add_reruns(const files::Checkpoint& checkpoint, const forward::Decoder& decoder, const FirstPass& pass,
                const NormReading& reading, const AttributeOptions& options, Attribution& result,
                const Progress& progress);

}  // namespace normscope::analysis
