#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hdf5_chunks.hpp"
#include "hdf5_file.hpp"
#include "parsed_file.hpp"

namespace normscope::checkpoint {

/// Collects the datasets of an HDF5 file as tensors.
class Hdf5Datasets {
 public:
  Hdf5Datasets(Hdf5File& file, ParsedFile& parsed) : file_(file), parsed_(parsed) {}

  /// Adds the dataset with that object header, unless it holds text. Elements that need no conversion remain
  /// in place; others are decoded on request.
  ///
  /// Errors    Format, Shape; Unsupported for types that are not numbers, for filters other than deflate and
  ///           shuffle and for layouts other than compact, contiguous and chunks in a tree
  void add(const std::string& name, std::span<const Hdf5Message> messages);

  /// Checks that no two elements share their bytes in the file.
  ///
  /// Errors    Format
  void finish();

 private:
  struct Placement;

  [[nodiscard]] Placement placement(const std::string& quoted, std::span<const Hdf5Message> messages);
  void read_chunks(Hdf5Grid& grid, std::uint64_t tree, const std::string& quoted);
  void occupy(std::uint64_t begin, std::uint64_t size);

  Hdf5File& file_;
  ParsedFile& parsed_;
  std::shared_ptr<UnpackedCache> cache_ = std::make_shared<UnpackedCache>();
  std::vector<Hdf5Extent> occupied_;
};

}  // namespace normscope::checkpoint
