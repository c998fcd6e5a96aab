#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "parsed_file.hpp"

/// The part of TensorFlow Lite's flatbuffers that holds constants: a Model, its Buffers, and the Tensors of
/// its SubGraphs with their QuantizationParameters. The graph itself is not read.
namespace normscope::checkpoint {

/// The constant tensors of a `.tflite` file in memory, by name; tensors that share a name get the suffix "#2"
/// and so on, in the file's order. Integers of 8 or 16 bits with scales are decoded to float32 on request, as
/// scale · (integer − zero point), with one scale for all or one for each entry of an axis. Tensors of text
/// and of unknown types are left out.
///
/// Errors    Format, Shape; Unsupported for sparse tensors; messages begin with `where`
///
/// Cost      O(file's structure + tensors · log tensors)
[[nodiscard]] ParsedFile parse_tflite(std::span<const std::byte> bytes, const std::string& where);

}  // namespace normscope::checkpoint
