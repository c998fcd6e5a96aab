#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/files/zip.hpp>

/// Layout of the `.npy` format:
///   1. 6 bytes: 0x93 "NUMPY"; 2 bytes: major and minor version
///   2. header length n, little-endian: 2 bytes in version 1.0, 4 bytes in 2.0 and 3.0
///   3. n bytes: a Python dict of literals, {'descr': str, 'fortran_order': bool, 'shape': tuple}
///   4. the elements
namespace normscope::files {

/// The header of a `.npy` file.
struct NpyHeader {
  Dtype dtype = Dtype::F64;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
  std::uint64_t elements = 1;

  [[nodiscard]] std::uint64_t data_bytes() const { return elements * (bits(dtype) / 8); }
};

/// Number of bytes that `npy_data_begin` needs at most.
inline constexpr std::size_t npy_prefix = 12;

/// Offset of the elements, from the first bytes of a file.
///
/// Errors    Format; messages begin with `where`
[[nodiscard]] std::size_t npy_data_begin(std::span<const std::byte> prefix, const std::string& where);

/// Parses the header from the bytes before the elements. Its `data_bytes` does not overflow.
///
/// Errors    Format, Shape, Unsupported; messages begin with `where`
[[nodiscard]] NpyHeader parse_npy_header(std::span<const std::byte> before_data, const std::string& where);

/// Throws unless an array of this header has `size` bytes of elements.
///
/// Errors    Format; messages begin with `where`
void check_data_size(const NpyHeader& header, std::uint64_t size, const std::string& where);

/// The elements, row-major and little-endian: `data` itself if it is stored so, else in `buffer`.
///
/// Requires  data.size() == header.data_bytes()
[[nodiscard]] std::span<const std::byte> npy_elements(const NpyHeader& header,
                                                      std::span<const std::byte> data,
                                                      std::vector<std::byte>& buffer);

/// A `.npy` file's header, and its elements as they lie in the file.
struct NpyArray {
  NpyHeader header;
  std::span<const std::byte> data;
};

/// The array in the bytes of a `.npy` file.
///
/// Errors    Format, Shape, Unsupported; messages begin with `where`
[[nodiscard]] NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& where);

/// The header of a row-major array, padded to 64-byte alignment.
[[nodiscard]] std::string npy_preamble(Dtype dtype, std::span<const std::uint64_t> shape);

// Arrays in the members of a zip file; `bytes` are those of the file.

/// Reads the header of the array in `member` and checks the member's size against it.
///
/// Errors    Format, Shape, Unsupported; messages begin with `where`
[[nodiscard]] NpyHeader read_npz_header(std::span<const std::byte> bytes, const ZipMember& member,
                                        const std::string& where);

/// Unpacks the elements as they are stored. Memory is allocated only after the member's size is known to
/// equal that of its array.
///
/// Errors    as `read_npz_header`; Format for a wrong checksum; Unsupported beyond `most_unpacked`
[[nodiscard]] std::vector<std::byte> read_npz_data(std::span<const std::byte> bytes, const ZipMember& member,
                                                   const std::string& where);

}  // namespace normscope::files
