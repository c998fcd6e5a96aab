#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <normscope/analysis/share_range.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/models/model.hpp>

namespace normscope::analysis {

/// Numbers that linear maps read of a vector u with |u| <= 1: number j is centre_j + row_j·u up to error_j.
struct BallReads {
  std::vector<double> rows{};  ///< (numbers, width)
  std::vector<double> centres{}, lengths{}, errors{};
  std::vector<Interval> intervals{};  ///< of the exact numbers
};

/// Σ_j reads_j φ(z_j), or Σ_j reads_j x_j φ(z_j): `z` are the gates if there are any, x the inputs.
struct BallUnits {
  models::Activation activation = models::Activation::gelu;
  std::size_t width = 0;
  std::vector<double> reads{};
  BallReads z{}, x{};

  [[nodiscard]] bool gated() const { return !x.centres.empty(); }
};

/// An upper bound of sign · that sum over |u| <= 1, and what proves it.
struct BallBound {
  double value = infinity;
  QuadraticProof proof{};
};

/// The best bound that is found; none where nothing is proved.
///
/// Accuracy  proved, rounding included
///
/// Cost      about 20 products of `width` columns for each unit and column
[[nodiscard]] std::optional<BallBound> bound_units(const BallUnits& units, double sign, unsigned threads);

}  // namespace normscope::analysis
