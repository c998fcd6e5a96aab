#pragma once

#include <functional>

#include <Eigen/Core>

#include <normscope/core/progress.hpp>

namespace normscope::nets {

/// R of a QR decomposition A = QR, min(rows, width) × width, of a matrix that `fill` writes in blocks of
/// rows, starting at row `first`. Blocks are triangularized separately, then merged in pairs. Their sizes and
/// order depend only on the shape, so results are bitwise independent of the threads.
///
/// Source    [Demmel, Grigori, Hoemmen, Langou 2012, TSQR]
///
/// Cost      2 rows · width² plus a quarter; memory for one block per thread and all triangles
[[nodiscard]] Eigen::MatrixXd triangle_of(
    Eigen::Index rows, Eigen::Index width,
    const std::function<void(Eigen::Index first, Eigen::MatrixXd& block)>& fill, unsigned threads,
    const Progress& progress);

}  // namespace normscope::nets
