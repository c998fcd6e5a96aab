#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/dtype.hpp>

namespace normscope::files {

/// An IDX file's array, its elements unpacked and little-endian.
struct IdxElements {
  std::vector<std::uint64_t> shape;
  Dtype dtype = Dtype::F64;
  std::vector<std::byte> bytes;
};

/// As `read_idx`, without decoding.
[[nodiscard]] IdxElements read_idx_elements(std::span<const std::byte> bytes, const std::string& where);

}  // namespace normscope::files
