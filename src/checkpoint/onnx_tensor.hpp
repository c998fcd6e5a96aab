#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "parsed_file.hpp"

namespace normscope::checkpoint {

/// The tensor in a TensorProto, named `name` if that is not empty. Elements stored in memory layout become a
/// view of `message`; others are decoded into the arena. Empty for strings.
/// Errors    Format, Shape; Unsupported for data outside the file and for types without a Dtype;
///           messages begin with `where`
[[nodiscard]] std::optional<Tensor> read_onnx_tensor(std::span<const std::byte> message,
                                                     std::string_view name, Arena& arena,
                                                     const std::string& where);

}  // namespace normscope::checkpoint
