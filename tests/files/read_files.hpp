#pragma once

#include <filesystem>
#include <memory>

#include <normscope/core/file.hpp>
#include <normscope/files/array.hpp>

namespace normscope::test {

/// The array of a `.npy` file.
inline files::Array read_npy(const std::filesystem::path& path) {
  return files::read(files::open_npy(std::make_shared<const MappedFile>(path), "npy: " + path.string()));
}

}  // namespace normscope::test
