#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "onnx_tensor.hpp"
#include "parsed_file.hpp"

/// The checkpoints of TensorFlow, version 2 ("bundles"): NAME.index, a LevelDB table with an entry for each
/// tensor, and NAME.data-00000-of-00001 and so on with the elements.
namespace normscope::checkpoint {

/// The tensors of a checkpoint from the bytes of its index. A tensor that the object graph of
/// `tf.train.Checkpoint` lists has the name of its variable there ("layer_normalization/gamma"), if no other
/// has it; others have their key, without "/.ATTRIBUTES/VARIABLE_VALUE". Tensors of text are left out.
/// Elements are parts of what `external` opens, and the checksum of a tensor is checked when elements of it
/// are first read.
///
/// `name` is that of the index, without ".index" and folders.
///
/// Errors    Format, Shape; Unsupported for slices of partitioned variables, big-endian files and unknown
///           types; messages begin with `where`
///
/// Cost      O(index + tensors · log tensors)
[[nodiscard]] ParsedFile parse_tensorflow(std::span<const std::byte> index, const std::string& name,
                                          const std::string& where, const OpenExternal& external);

}  // namespace normscope::checkpoint
