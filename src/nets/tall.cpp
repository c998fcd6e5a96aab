#include "tall.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include <normscope/core/eigen/decompositions.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::nets {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;

MatrixXd stacked(const MatrixXd& above, const MatrixXd& below) {
  MatrixXd both(above.rows() + below.rows(), above.cols());
  both << above, below;
  return both;
}

/// Smallest number of rows of a block, such that merging triangles is the smaller part of the work.
Index scatter_block_rows(Index width) { return std::max<Index>(256, 4 * width); }

}  // namespace

MatrixXd triangle_of(Index rows, Index width, const std::function<void(Index, MatrixXd&)>& fill,
                     unsigned threads, const Progress& progress) {
  const Index blocks = std::max<Index>(1, rows / scatter_block_rows(width));
  std::vector<MatrixXd> triangles(static_cast<std::size_t>(blocks));
  std::mutex reporting;
  std::size_t done = 0;
  const std::size_t steps = 2 * triangles.size() - 1;
  const auto report = [&] {
    const std::lock_guard lock(reporting);
    progress("triangularizing", ++done, steps);
  };
  parallel_for(triangles.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t block = begin; block < end; ++block) {
      const Index first = rows * static_cast<Index>(block) / blocks;
      const Index last = rows * static_cast<Index>(block + 1) / blocks;
      MatrixXd piece(last - first, width);
      fill(first, piece);
      triangles[block] = normscope::triangle_of(std::move(piece));
      report();
    }
  });
  for (std::size_t apart = 1; apart < triangles.size(); apart *= 2) {
    const std::size_t pairs = (triangles.size() - apart + 2 * apart - 1) / (2 * apart);
    parallel_for(pairs, 1, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t pair = begin; pair < end; ++pair) {
        MatrixXd& above = triangles[2 * apart * pair];
        MatrixXd& below = triangles[2 * apart * pair + apart];
        above = normscope::triangle_of(stacked(above, below));
        below.resize(0, 0);
        report();
      }
    });
  }
  return std::move(triangles.front());
}

}  // namespace normscope::nets
