#pragma once

#include <cstddef>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/progress.hpp>
#include <normscope/core/view.hpp>
#include <normscope/model/model.hpp>

namespace normscope::forward {

/// y = W x + b for each row of x, in blocks of outputs, so that few weights are in memory.
///
/// Shapes    x (rows, map.in), y (rows, map.out)
///
/// Errors    Unsupported for x of another width; as `model::read_weight`; Cancelled
void apply(const checkpoint::Checkpoint& checkpoint, const model::Linear& map, MatrixView<const double> x,
           unsigned threads, MatrixView<double> y, const Progress& progress = {});

/// The same, row-major.
[[nodiscard]] std::vector<double> apply(const checkpoint::Checkpoint& checkpoint, const model::Linear& map,
                                        MatrixView<const double> x, unsigned threads);

/// Row `index` of an embedding.
///
/// Errors    as `model::read_weight`
[[nodiscard]] std::vector<double> table_row(const checkpoint::Checkpoint& checkpoint,
                                            const model::Linear& table, std::size_t index);

}  // namespace normscope::forward
