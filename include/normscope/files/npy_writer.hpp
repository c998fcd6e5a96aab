#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include <normscope/core/dtype.hpp>
#include <normscope/core/file.hpp>
#include <normscope/files/array.hpp>

namespace normscope::files {

/// The type in which a `.npy` file holds elements of `dtype`: F64, F32 and F16 as they are, BF16, which
/// NumPy lacks, as F32, and every other dtype as F64.
[[nodiscard]] Dtype npy_dtype(Dtype dtype);

/// Writes a `.npy` file piece by piece, atomically: the file appears with `commit`.
///
/// Errors    Io
class NpyWriter {
 public:
  /// Requires  dtype is `npy_dtype` of some dtype
  NpyWriter(const std::filesystem::path& path, Dtype dtype, std::span<const std::uint64_t> shape);

  /// Appends elements of the dtype, little-endian.
  void write(std::span<const std::byte> elements);
  /// Requires  as many elements were written as the shape has
  void commit();

 private:
  AtomicFile file_;
  std::uint64_t missing_;  ///< bytes still to be written
};

/// Writes a `.npy` file, atomically, in `npy_dtype` of the array's.
///
/// Errors    Io; Shape if values and shape disagree
void write_npy(const std::filesystem::path& path, const Array& array);

}  // namespace normscope::files
