#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <normscope/files/array.hpp>

/// The binary batches of CIFAR-10, plain or gzipped: records of 1 byte, the class 0 to 9, and 3072 bytes, the
/// red, green and blue planes of a 32 × 32 image.
namespace normscope::files {

/// Shapes    images (rows, 3, 32, 32), labels (rows)
struct LabelledImages {
  Array images;
  Array labels;
};

/// The images in the bytes of a batch.
///
/// Errors    Format; messages begin with `where`
[[nodiscard]] LabelledImages read_cifar10(std::span<const std::byte> bytes, const std::string& where);

}  // namespace normscope::files
