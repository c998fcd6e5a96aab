#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <normscope/files/array.hpp>

/// IDX, the format of MNIST, plain or gzipped:
///   1. 2 bytes of zero; 1 byte: element type, 0x08 U8, 0x09 I8, 0x0B I16, 0x0C I32, 0x0D F32, 0x0E F64;
///      1 byte: number of axes, at least 1
///   2. 4 bytes an axis: its length, big-endian
///   3. the elements, big-endian, row-major, up to the file's last byte
namespace normscope::files {

/// The array in the bytes of an IDX file, unpacked first where they are gzip.
///
/// Errors    Format, Shape; messages begin with `where`
[[nodiscard]] Array read_idx(std::span<const std::byte> bytes, const std::string& where);

// The binary batches of CIFAR-10, plain or gzipped: records of 1 byte, the class 0 to 9, and 3072 bytes, the
// red, green and blue planes of a 32 × 32 image.

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
