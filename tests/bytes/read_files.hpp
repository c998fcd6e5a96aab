#pragma once

#include <filesystem>
#include <memory>

#include <normscope/bytes/array.hpp>
#include <normscope/core/file.hpp>

namespace normscope::test {

/// The array of a `.npy` file.
inline bytes::Array read_npy(const std::filesystem::path& path) {
  return bytes::read(bytes::open_npy(std::make_shared<const MappedFile>(path), "npy: " + path.string()));
}

}  // namespace normscope::test
