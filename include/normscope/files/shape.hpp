#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace normscope::files {

/// Product of the extents, 1 for none; empty if a partial product overflows.
[[nodiscard]] inline std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape) {
  std::uint64_t product = 1;
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  return product;
}

}  // namespace normscope::files
