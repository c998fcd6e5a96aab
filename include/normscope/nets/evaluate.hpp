#pragma once

#include <cstdint>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/nets/net.hpp>

/// Evaluates nets by their definition. This code is independent of the construction of nets, which predicts
/// their values with code of its own (test: house.evaluator).
namespace normscope::nets {

/// The head's outputs for each row of `x`.
///
/// Sums run in index order and start from the bias. A norm is its plain definition in one pass: mean,
/// deviations, mean square, division. A block whose computed deviations are all zero gives the bias; one
/// whose mean square would leave the range of its precision is divided by a power of two first. All
/// computations use the net's precision and round at the end.
///
/// Shapes    x (rows, net.in()) → rows × net.out()
///
/// Errors    Shape, Argument: see `validate`, and when x is not net.in() wide; Cancelled
///
/// Accuracy  no fused operations, and the same bits for every number of threads and rows (test:
///           Net.RowsAndThreadsDoNotChangeBits); each layer equals norm::forward to 1e-13 times the largest
///           entry over the root mean square of the block's deviations, because the mean is subtracted once
///           (tests: Net.LayersAreTheNorm, Net.LayersAreTheNormFarFromZero)
///
/// Cost      one multiplication per weight and row; about thirty times that in double-double
[[nodiscard]] std::vector<double> evaluate(const Net& net, MatrixView<const double> x, unsigned threads = 0,
                                           const Progress& progress = {});

/// Whether a row whose outputs are not finite gets some class or is an error.
enum class Overflow { some_class, error };

/// The class of each row: classes[argmax evaluate], with outputs compared before they are rounded.
///
/// Errors    as `evaluate`; Argument naming the row where `overflow` says so
[[nodiscard]] std::vector<std::int64_t> labels(const Net& net, MatrixView<const double> x,
                                               unsigned threads = 0, const Progress& progress = {},
                                               Overflow overflow = Overflow::some_class);

/// The output of each layer, before the head: the l-th entry has rows × layers[l].out values.
[[nodiscard]] std::vector<std::vector<double>> trace(const Net& net, MatrixView<const double> x,
                                                     unsigned threads = 0);

}  // namespace normscope::nets
