#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/view.hpp>

#include "leads.hpp"

namespace normscope::certificates {

/// The keys with 0 in columns whose entries are all equal. Such columns do not affect differences of scores,
/// but may be far larger than the others.
[[nodiscard]] std::vector<double> without_constants(MatrixView<const double> keys);

/// Keys with each column divided by a power of two of its own, and directions multiplied by it. Scores do not
/// change, and no column underflows even if columns are hundreds of powers of two apart.
class ColumnUnits {
 public:
  explicit ColumnUnits(MatrixView<const double> keys);

  /// Whether products of the unscaled keys could underflow.
  [[nodiscard]] bool are_needed() const { return needed_; }
  [[nodiscard]] MatrixView<const double> keys() const { return {values_.data(), rows_, exponents_.size()}; }
  /// The claim "along `direction` key `index` scores higher than every other key by `margin` times the
  /// direction's length", converted to the scaled keys.
  [[nodiscard]] LeadClaim claim(std::size_t index, std::vector<double> direction, double margin) const;

 private:
  std::size_t rows_;
  std::vector<int> exponents_;
  std::vector<double> values_{};
  bool needed_ = false;
};

}  // namespace normscope::certificates
