#pragma once

#include <span>

#include <Eigen/Core>

#include <normscope/core/view.hpp>
#include <normscope/numeric/eigen/row_major.hpp>

/// Conversions of Eigen vectors and matrices to the library's views.
namespace normscope::selectability {

/// A row-major matrix that converts to a MatrixView.
class RowMajor {
 public:
  explicit RowMajor(const Eigen::MatrixXd& matrix) : rows_(matrix) {}
  // NOLINTNEXTLINE(google-explicit-constructor): implicit, to be passed as an argument
  operator MatrixView<const double>() const {
    return {rows_.data(), static_cast<std::size_t>(rows_.rows()), static_cast<std::size_t>(rows_.cols())};
  }

 private:
  RowMajorMatrix rows_;
};

[[nodiscard]] inline std::span<const double> as_span(const Eigen::VectorXd& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

}  // namespace normscope::selectability
