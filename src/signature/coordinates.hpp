#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/Core>

#include <normscope/signature/extract.hpp>

#include "row_slices.hpp"

namespace normscope::signature {

/// Rows in coordinates y of the subspace, and whitened: y = mean + colour x.
struct Coordinates {
  std::size_t rows = 0;          ///< of all members
  std::vector<double> points{};  ///< x of this member's rows (its rows × rank)
  Eigen::VectorXd mean{};        ///< of y
  Eigen::MatrixXd colour{};      ///< y − mean = colour x
  double off = 0.0;              ///< root mean square distance of a logit from the subspace, of some rows
  std::size_t distinct = 0;      ///< rows, by a hash of their bytes

  [[nodiscard]] MatrixView<const double> view(std::size_t rank) const {
    return {points.data(), points.size() / rank, rank};
  }
};

/// Reads every row of this member once, in blocks.
///
/// Errors    as `Outputs::whole_row`; Cancelled
[[nodiscard]] Coordinates coordinates(const Outputs& outputs, const Subspace& subspace,
                                      const RowSlices& slices, const ExtractOptions& options);

}  // namespace normscope::signature
