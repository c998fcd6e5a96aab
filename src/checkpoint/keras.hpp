#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <normscope/bytes/zip.hpp>

#include "parsed_file.hpp"

/// The format of Keras 3's `model.save("x.keras")`: a zip of stored members
///   config.json        the layers and their options
///   model.weights.h5   their weights, by the path of attributes to a layer
///   metadata.json      Keras's version
namespace normscope::checkpoint {

/// Whether a zip with these members was written by Keras, recognised by its weights.
[[nodiscard]] bool is_keras_zip(std::span<const bytes::ZipMember> members);

/// The weights of a `.keras` archive in memory, as `parse_hdf5` gives them, with the text of config.json as
/// metadata `model_config`.
///
/// Errors    as `parse_hdf5`; Unsupported for compressed members
[[nodiscard]] ParsedFile parse_keras_zip(std::span<const std::byte> bytes,
                                         std::span<const bytes::ZipMember> members, const std::string& where);

}  // namespace normscope::checkpoint
