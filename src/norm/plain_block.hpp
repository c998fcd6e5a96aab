#pragma once

#include <span>
#include <string_view>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// A block of a row as the plain definitions of the norm and of its derivatives see it.
namespace normscope::norm::detail {

/// A positive number that may lie beyond a double's range, or zero.
class Length {
 public:
  Length(double scaled, double balance) : scaled_(scaled), balance_(balance) {}
  [[nodiscard]] bool is_zero() const { return scaled_ == 0.0; }
  /// value over the length.
  [[nodiscard]] double divide(double value) const { return value / scaled_ * balance_; }

 private:
  double scaled_;   ///< length · balance
  double balance_;  ///< a power of two
};

/// q = z/s, |q| <= 1, with z = x − mean (layer) or z = x and s = sqrt(|z|² + R² eps), which is returned:
/// zero where nothing deviates and eps = 0, and q with it.
/// Shapes    x, q: as many, a block of `spec`
/// Requires  q is x itself or does not overlap it
Length relative_deviations(const NormSpec& spec, std::span<const double> x, std::span<double> q);

/// Throws unless `vectors` has the shape of `x`.
void require_vectors(std::string_view who, MatrixView<const double> x, MatrixView<const double> vectors);

/// to = from times the gain of features `begin` on.
void multiply_by_gain(const NormSpec& spec, std::size_t begin, std::span<const double> from,
                      std::span<double> to);

}  // namespace normscope::norm::detail
