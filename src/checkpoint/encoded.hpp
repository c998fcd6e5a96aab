#pragma once

#include <cstdint>

#include <normscope/checkpoint/checkpoint.hpp>

namespace normscope::checkpoint {

/// The bytes of elements [offset, offset + count) of `tensor`, flattened row-major.
///
/// Errors    Shape if the range leaves the tensor; Unsupported for a dtype without decoder
[[nodiscard]] bytes::StoredBytes encoded(const Tensor& tensor, std::uint64_t offset, std::uint64_t count);

}  // namespace normscope::checkpoint
