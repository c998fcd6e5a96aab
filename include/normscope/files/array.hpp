#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/core/file.hpp>
#include <normscope/files/zip.hpp>

namespace normscope::files {

/// An array of float64 values, row-major, decoded from a file. `dtype` is the type in the file.
struct Array {
  std::vector<std::uint64_t> shape;
  Dtype dtype = Dtype::F64;
  std::vector<double> values;
};

/// An array in a file, whose header is validated and whose elements are decoded on request. Copies share the
/// open file.
struct StoredArray {
  using Fetch = std::function<std::span<const std::byte>(std::vector<std::byte>& buffer)>;

  std::vector<std::uint64_t> shape{};
  Dtype dtype = Dtype::F64;
  /// The elements, row-major and little-endian: in the mapped file if they are stored so, else in `buffer`.
  /// They may be unaligned.
  Fetch fetch{};
  /// The elements where they lie in the file, if they are stored as `fetch` gives them.
  std::optional<std::span<const std::byte>> in_place{};
};

/// The array of a `.npy` file: NumPy formats 1.0 to 3.0, C or Fortran order, either byte order.
///
/// Errors    Format, Shape; Unsupported for object, string and structured dtypes; messages begin with `where`
[[nodiscard]] StoredArray open_npy(std::shared_ptr<const MappedFile> file, const std::string& where);

/// The array of an IDX file, unpacked first where it is gzip.
///
/// Errors    as `read_idx`
[[nodiscard]] StoredArray open_idx(const MappedFile& file, const std::string& where);

/// The array in a member of an `.npz` file, stored or deflated.
///
/// Errors    as `open_npy`; Format for a damaged member, whose elements are unpacked by `fetch`
[[nodiscard]] StoredArray open_npz_member(std::shared_ptr<const MappedFile> file, const ZipMember& member,
                                          const std::string& where);

/// The same in the bytes of a file, which outlive the array. The checksum of a member that is stored is not
/// checked, so that elements that need no change are not read.
///
/// Errors    as `open_npy`
[[nodiscard]] StoredArray open_npz_member(std::span<const std::byte> bytes, const ZipMember& member,
                                          const std::string& where);

/// The member of that name, or else the one that has ".npy" behind it; null if there is neither.
[[nodiscard]] const ZipMember* find_npz_member(std::span<const ZipMember> members, std::string_view name);

/// The array with its elements decoded.
///
/// Errors    as `fetch`; Unsupported for a dtype without decoder
[[nodiscard]] Array read(const StoredArray& array);

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

/// Numbers written out instead of an array's name: `1,1.8,0.6` is a row, `0,0;1,0;0,1` are three. Empty if
/// `text` is something else: it has neither comma nor semicolon, or contains anything but numbers.
///
/// Errors    Argument for a number that is malformed, not finite, or rounds to zero; Shape for rows of
///           different lengths
[[nodiscard]] std::optional<Array> parse_written(const std::string& text);

/// Whether `text` is a single number, nan or inf, which `parse_written` does not accept.
[[nodiscard]] bool is_one_number(const std::string& text);

}  // namespace normscope::files
