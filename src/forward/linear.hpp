#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/progress.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

namespace normscope::forward {

/// y = W x + b for each row of x, in blocks of outputs, so that few weights are in memory.
///
/// Shapes    x (rows, map.in), y (rows, map.out)
///
/// Errors    Unsupported for x of another width; as `models::read_weight`; Cancelled
void apply(const files::Checkpoint& checkpoint, const models::Linear& map, MatrixView<const double> x,
           unsigned threads, MatrixView<double> y, const Progress& progress = {});

/// The same, row-major.
[[nodiscard]] std::vector<double> apply(const files::Checkpoint& checkpoint, const models::Linear& map,
                                        MatrixView<const double> x, unsigned threads);

/// Row `index` of an embedding.
///
/// Errors    as `models::read_weight`
[[nodiscard]] std::vector<double> table_row(const files::Checkpoint& checkpoint, const models::Linear& table,
                                            std::size_t index);

}  // namespace normscope::forward
