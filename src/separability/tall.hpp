#pragma once

#include <functional>

#include <Eigen/Core>

#include <normscope/core/progress.hpp>

namespace normscope::separability {

/// R of a QR decomposition A = QR, min(rows, width) × width, of a matrix that `fill` writes a block of rows
/// at a time, from row `first` on. Blocks are triangularized each by itself, then in pairs: their sizes and
/// their order come from the shape alone, so not a bit depends on the threads.
///
/// Source    [Demmel, Grigori, Hoemmen, Langou 2012, TSQR]
/// Cost      2 rows · width² and a quarter more; one block a thread in memory, and all their triangles
[[nodiscard]] Eigen::MatrixXd triangle_of(
    Eigen::Index rows, Eigen::Index width,
    const std::function<void(Eigen::Index first, Eigen::MatrixXd& block)>& fill, unsigned threads,
    const Progress& progress);

}  // namespace normscope::separability
