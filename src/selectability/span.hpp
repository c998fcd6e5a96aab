#pragma once

#include <span>
#include <vector>

#include <Eigen/Core>

#include "key_set.hpp"

namespace normscope::selectability {

/// The directions in which the keys of a key set extend, and their extents.
class Span {
 public:
  /// Leaves out directions whose extent is below `rank_tolerance` times the largest.
  Span(const KeySet& key_set, double rank_tolerance);

  [[nodiscard]] Eigen::Index rank() const { return rank_; }
  /// Coordinates in the span in which the keys have similar extent in every direction.
  [[nodiscard]] Eigen::VectorXd whitened(const Eigen::VectorXd& vector) const;
  /// The query that scores keys as `direction` scores their whitened coordinates.
  [[nodiscard]] Eigen::VectorXd query(const Eigen::VectorXd& direction) const;
  /// The projection of a query onto the span.
  [[nodiscard]] Eigen::VectorXd inside(const Eigen::VectorXd& query) const;

 private:
  Eigen::Index rank_ = 0;
  Eigen::MatrixXd basis_{};     ///< orthonormal columns; empty for the identity
  Eigen::MatrixXd triangle_{};  ///< T with TᵀT the mean second moment in the span
};

}  // namespace normscope::selectability
