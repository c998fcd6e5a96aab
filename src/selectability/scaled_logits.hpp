#pragma once

#include <cmath>
#include <limits>
#include <optional>

#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/rounding.hpp>
#include <normscope/selectability/logits.hpp>

namespace normscope::selectability {

/// Logits divided by a power of two if they are too large or too small for products, otherwise the original
/// logits. Points, weights and answers do not depend on the scale; `lower` and `upper` convert leads back.
class ScaledLogits {
 public:
  explicit ScaledLogits(const Logits& logits) : original_(&logits), by_(BinaryScale::of(logits.scale)) {
    if (by_.is_safe()) {
      by_ = {};
      return;
    }
    copy_ = logits;
    by_.divide(copy_->rows);
    by_.divide(copy_->offsets);
    copy_->scale = by_.divide(logits.scale);
    const double vanished = static_cast<double>(logits.width + 2) * std::numeric_limits<double>::denorm_min();
    for (Logits::Own& own : copy_->own) {
      own = {by_.divide(own.size), by_.divide(own.rounding) + vanished,
             by_.divide(own.rounding_error) + vanished};
    }
    // What underflows, of a row or of the rounding itself, is below the smallest double.
    copy_->rounding = by_.divide(logits.rounding) + vanished;
  }

  [[nodiscard]] const Logits& logits() const { return copy_ ? *copy_ : *original_; }
  /// Converts bounds of the scaled logits to bounds of the original ones.
  [[nodiscard]] double lower(double bound) const {
    return by_.is_one() ? bound : std::nextafter(by_.multiply(bound), -infinity);
  }
  [[nodiscard]] double upper(double bound) const {
    return by_.is_one() ? bound : std::nextafter(by_.multiply(bound), infinity);
  }
  /// Converts a lead of the original logits to the scaled ones.
  [[nodiscard]] double divide(double lead) const { return by_.divide(lead); }

 private:
  const Logits* original_;
  BinaryScale by_;
  std::optional<Logits> copy_{};
};

}  // namespace normscope::selectability
