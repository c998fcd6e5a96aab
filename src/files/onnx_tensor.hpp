#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "parsed_file.hpp"

namespace normscope::files {

/// Opens a file in the model's folder, by its name, that holds elements of the tensor of that name.
using OpenExternal = std::function<StoredBytes(std::string_view tensor, const std::string& file)>;

/// The tensor in a TensorProto, named `name` if that is not empty. Elements stored in memory layout become a
/// part of `message`; others are decoded into the arena. Elements in another file are a view of what
/// `external` opens. Empty for strings.
///
/// Errors    Format, Shape, also for another file that is not in the model's folder; Unsupported for data in
///           another file without `external`, and for types without a Dtype; messages begin with `where`
[[nodiscard]] std::optional<Tensor> read_onnx_tensor(const StoredBytes& message, std::string_view name,
                                                     Arena& arena, const std::string& where,
                                                     const OpenExternal& external = {});

}  // namespace normscope::files
