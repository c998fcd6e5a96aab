#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/models/model.hpp>

namespace normscope::forward {

/// y = W x + b for each row of x, in blocks of outputs, so that few weights are in memory.
///
/// Shapes    x (rows, map.in), y (rows, map.out)
///
/// Errors    Unsupported for x of another width; as `models::read_weight`; Cancelled
void apply(const files::Checkpoint& checkpoint, const models::Linear& map, MatrixView<const double> x,
           unsigned threads, MatrixView<double> y, const Progress& progress = {},
           const Disturbance& disturbance = {});

/// The products of a map with rows of `x`, row-major.
[[nodiscard]] std::vector<double> apply(const files::Checkpoint& checkpoint, const models::Linear& map,
                                        MatrixView<const double> x, unsigned threads,
                                        const Disturbance& disturbance = {});

/// Row `index` of an embedding.
///
/// Errors    as `models::read_weight`
[[nodiscard]] std::vector<double> table_row(const files::Checkpoint& checkpoint, const models::Linear& table,
                                            std::size_t index, const Disturbance& disturbance = {});

/// The change of a matrix or norm of this name; 0 without one.
[[nodiscard]] double change_of(const Disturbance& disturbance, std::string_view name);

/// Moves each entry of rows up or down, by `relative` of itself and the bound of the rounding of `terms`
/// operations on the largest entry of its row. `place` tells the pass's operations apart.
void disturb(const Disturbance& disturbance, std::string_view place, std::ptrdiff_t terms, double relative,
             MatrixView<double> rows);

/// Causal attention of `heads`, indices in `model.heads`, over the outputs of the norm that they read: the
/// sums of values, head after head, row-major. `observer` is called with their weights. Values are read from
/// `of_values` where that is given.
///
/// Shapes    normed, of_values (tokens, width)
///
/// Errors    as `models::read_weight`; Unsupported for norms of queries or keys that are neither of a head
///           nor of all heads
[[nodiscard]] std::vector<double> attended(const files::Checkpoint& checkpoint, const models::Model& model,
                                           std::span<const std::size_t> heads,
                                           MatrixView<const double> normed, const AttentionObserver& observer,
                                           unsigned threads, const Disturbance& disturbance = {},
                                           const MatrixView<const double>* of_values = nullptr);

}  // namespace normscope::forward
