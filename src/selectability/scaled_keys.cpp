#include "scaled_keys.hpp"

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope::selectability {

Selection ScaledKeys::divided(Selection selection) const {
  by.divide(selection.center);
  selection.scale = by.divide(selection.scale);
  by.divide(selection.extents);
  for (Verdict& verdict : selection.keys) {
    verdict.margin = by.divide(verdict.margin);
    verdict.residual = by.divide(verdict.residual);
  }
  return selection;
}

Selection ScaledKeys::multiplied(Selection selection) const {
  by.multiply(selection.center);
  selection.scale = by.multiply(selection.scale);
  by.multiply(selection.extents);
  for (Verdict& verdict : selection.keys) {
    if (verdict.margin > 0.0 && std::isfinite(verdict.margin)) verdict.margin = lower(verdict.margin);
    if (verdict.residual > 0.0) verdict.residual = upper(verdict.residual);
  }
  return selection;
}

std::optional<ScaledKeys> scaled_keys(MatrixView<const double> keys) {
  const double largest = largest_size(keys);
  if (std::isfinite(largest) && largest > largest_entry) {
    throw Error(ErrorCode::Argument,
                fmt::format("select: the keys have {}, expected numbers up to 2^1000", largest));
  }
  if (largest > 0.0 && largest < least_entry) {
    throw Error(
        ErrorCode::Argument,
        "select: all keys are below 2^-1010, expected larger numbers; a power of two times the keys has "
        "the same answers");
  }
  const BinaryScale by = BinaryScale::of(largest);
  if (by.is_safe()) return std::nullopt;
  return ScaledKeys{.by = by, .values = by.divided(keys), .rows = keys.rows(), .width = keys.width()};
}

}  // namespace normscope::selectability
