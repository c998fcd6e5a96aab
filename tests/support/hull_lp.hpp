#pragma once

#include <cstddef>
#include <vector>

#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>

#include <normscope/core/view.hpp>

namespace normscope::support {

/// One linear program per key, solved by CLP: is there λ >= 0 with Σλ = 1 and Σ λ_j k_j = k_i, λ_i = 0?
/// The matrix is loaded once and each program starts from the basis of the one before.
class HullPrograms {
 public:
  explicit HullPrograms(MatrixView<const double> keys) : keys_(keys) {
    const int rows = static_cast<int>(keys.width()) + 1;
    CoinPackedMatrix matrix(true, 0.0, 0.0);
    matrix.setDimensions(rows, 0);
    std::vector<int> all(static_cast<std::size_t>(rows));
    for (int i = 0; i < rows; ++i) all[static_cast<std::size_t>(i)] = i;
    std::vector<double> column(static_cast<std::size_t>(rows), 1.0);
    for (std::size_t key = 0; key < keys.rows(); ++key) {
      for (std::size_t i = 0; i < keys.width(); ++i) column[i] = keys.row(key)[i];
      matrix.appendCol(rows, all.data(), column.data());
    }
    const std::vector<double> zeros(keys.rows(), 0.0);
    const std::vector<double> ones(static_cast<std::size_t>(rows), 1.0);
    model_.setLogLevel(0);
    model_.loadProblem(matrix, zeros.data(), nullptr, zeros.data(), ones.data(), ones.data());
  }

  /// Whether key `index` lies in the hull of the others, to CLP's tolerance.
  [[nodiscard]] bool inside(std::size_t index) { return covered(index, false); }

  /// Whether it does once its last feature is raised enough: for rows (k, c) no u has k·u + c strictly
  /// largest.
  [[nodiscard]] bool below(std::size_t index) { return covered(index, true); }

 private:
  [[nodiscard]] bool covered(std::size_t index, bool raised) {
    const int width = static_cast<int>(keys_.width());
    for (int i = 0; i < width; ++i) {
      const double value = keys_.row(index)[static_cast<std::size_t>(i)];
      model_.setRowBounds(i, value, raised && i == width - 1 ? COIN_DBL_MAX : value);
    }
    const int column = static_cast<int>(index);
    model_.setColumnUpper(column, 0.0);
    model_.dual();
    const bool feasible = model_.isProvenOptimal();
    model_.setColumnUpper(column, 1.0);
    return feasible;
  }

  MatrixView<const double> keys_;
  ClpSimplex model_{};
};

}  // namespace normscope::support
