#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "parsed_file.hpp"

/// The part of HDF5 that h5py and Keras write:
///   a superblock of version 0 to 3, which leads to the root group
///   groups, with links in a symbol table or in messages of the object header
///   datasets of integers and IEEE floating-point numbers in either byte order, stored compactly,
///   contiguously or in chunks in a version 1 tree, with the filters deflate and shuffle
/// The format is described in "HDF5 File Format Specification Version 3.0".
namespace normscope::checkpoint {

/// The datasets of an HDF5 file in memory, named by their path without the first '/'. Datasets of text are
/// left out. Metadata are the text attributes of the root group and of Keras's "model_weights"
/// (`model_config`, `keras_version`, `backend`), and as "GROUP@name" the name that Keras 3 gives a layer in
/// its group "vars".
///
/// Errors    Format, Shape; Unsupported for other parts of the format, for an object with two names, for
///           groups nested deeper than 64 and for chunks beyond 32 MiB; messages begin with `where`
///
/// Cost      O(structures + tensors · log tensors); elements in place are not read
[[nodiscard]] ParsedFile parse_hdf5(std::span<const std::byte> bytes, const std::string& where);

}  // namespace normscope::checkpoint
