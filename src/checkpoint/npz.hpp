#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <normscope/checkpoint/array.hpp>

#include "zip.hpp"

namespace normscope::checkpoint {

/// The array in one member of the zip in `bytes`. Memory for elements is allocated only after the member's
/// size is known to equal that of its array.
/// Errors    Format, Shape, Unsupported; messages begin with `where`
[[nodiscard]] Array read_npz_member(std::span<const std::byte> bytes, const ZipMember& member,
                                    const std::string& where);

}  // namespace normscope::checkpoint
