#pragma once

#include <string>

#include "onnx_tensor.hpp"
#include "parsed_file.hpp"

/// The supported part of ONNX: a ModelProto with one GraphProto, whose initializers and Constant nodes are
/// the tensors.
namespace normscope::checkpoint {

/// The tensors and the graph of an `.onnx` file. Tensors of strings are left out. Elements of initializers
/// that are stored in memory layout are parts of `stored`, and those in another file of what `external`
/// opens; of a file that is not in memory, they are not read.
///
/// Errors    Format, Shape, Unsupported, Io; messages begin with `where`
///
/// Cost      O(nodes + tensors · log tensors), and sorting the names of the graph's values
[[nodiscard]] ParsedFile parse_onnx(const bytes::StoredBytes& stored, const std::string& where,
                                    const OpenExternal& external = {});

}  // namespace normscope::checkpoint
