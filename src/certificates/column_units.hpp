#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/view.hpp>

#include "leads.hpp"

namespace normscope::certificates {

/// The keys with 0 in columns whose entries are all equal, in which no query scores them apart: what is
/// constant may be far larger than what is not.
[[nodiscard]] std::vector<double> without_constants(MatrixView<const double> keys);

/// Keys with each column in a power of two of its own, and directions in their inverses: scores stay what
/// they are, and of columns that are hundreds of powers of two apart none vanishes.
class ColumnUnits {
 public:
  explicit ColumnUnits(MatrixView<const double> keys);

  /// Whether products of the keys as they are could vanish.
  [[nodiscard]] bool are_needed() const { return needed_; }
  [[nodiscard]] MatrixView<const double> keys() const { return {values_.data(), rows_, exponents_.size()}; }
  /// "Along `direction` key `index` scores more than every other one by `margin` times its length", as a
  /// claim on these keys.
  [[nodiscard]] LeadClaim claim(std::size_t index, std::vector<double> direction, double margin) const;

 private:
  std::size_t rows_;
  std::vector<int> exponents_;
  std::vector<double> values_{};
  bool needed_ = false;
};

}  // namespace normscope::certificates
