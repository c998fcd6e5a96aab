#pragma once

#include <cstddef>
#include <optional>
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

/// Applies maps side by side, of equal sizes: y (rows, maps · out).
void apply(const files::Checkpoint& checkpoint, std::span<const models::Linear* const> maps,
           MatrixView<const double> x, unsigned threads, MatrixView<double> y, const Progress& progress = {},
           const Disturbance& disturbance = {});

/// The products of a map with rows of `x`, row-major.
[[nodiscard]] std::vector<double> apply(const files::Checkpoint& checkpoint, const models::Linear& map,
                                        MatrixView<const double> x, unsigned threads,
                                        const Disturbance& disturbance = {});

/// The weights of a map, (out, in), read by several threads.
///
/// Errors    as `models::read_weight`
[[nodiscard]] std::vector<double> whole_weight(const files::Checkpoint& checkpoint, const models::Linear& map,
                                               unsigned threads);

/// Outputs of a product that a thread computes at a time, so that packing its rows costs little.
[[nodiscard]] std::size_t outputs_together(std::size_t outputs, unsigned threads);

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

/// What attention reads: the outputs of its norm for contexts of equal lengths, one after the other.
struct AttentionInput {
  MatrixView<const double> rows;
  std::size_t contexts = 1;
  bool last_only = false;  ///< whether the last position of each context alone is wanted
  std::optional<MatrixView<const double>> of_values{};  ///< what values are read from, if from other rows
};

/// Causal attention of `heads`, indices in `model.heads`: the sums of values, head after head, row-major, for
/// each row or each context. `observer` is called with the weights of a single context.
///
/// Errors    as `models::read_weight`; Unsupported for norms of queries or keys that are neither of a head
///           nor of all heads
[[nodiscard]] std::vector<double> attended(const files::Checkpoint& checkpoint, const models::Model& model,
                                           std::span<const std::size_t> heads, const AttentionInput& input,
                                           const AttentionObserver& observer, unsigned threads,
                                           const Disturbance& disturbance = {});

/// The last row of each of so many contexts.
[[nodiscard]] std::vector<double> last_rows(MatrixView<const double> rows, std::size_t contexts);

}  // namespace normscope::forward
