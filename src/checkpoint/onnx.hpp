#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "onnx_tensor.hpp"
#include "parsed_file.hpp"

/// The supported part of ONNX: a ModelProto with one GraphProto, whose initializers and Constant nodes are
/// the tensors.
namespace normscope::checkpoint {

/// The tensors and the graph of an `.onnx` file held in memory. Tensors of strings are left out. Initializers
/// with their elements in another file are parts of what `external` opens.
///
/// Errors    Format, Shape, Unsupported; messages begin with `where`
///
/// Cost      O(nodes + tensors · log tensors), and sorting the names of the graph's values
[[nodiscard]] ParsedFile parse_onnx(std::span<const std::byte> bytes, const std::string& where,
                                    const OpenExternal& external = {});

}  // namespace normscope::checkpoint
