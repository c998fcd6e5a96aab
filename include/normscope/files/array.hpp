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
#include <normscope/files/checkpoint.hpp>
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

/// Opens an array in the bytes of a file, which outlive the array. The checksum of a member that is stored is
/// not checked, so that elements that need no change are not read.
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

// IDX, the format of MNIST, plain or gzipped:
//   1. 2 bytes of zero; 1 byte: element type, 0x08 U8, 0x09 I8, 0x0B I16, 0x0C I32, 0x0D F32, 0x0E F64;
//      1 byte: number of axes, at least 1
//   2. 4 bytes an axis: its length, big-endian
//   3. the elements, big-endian, row-major, up to the file's last byte

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

/// Opens the checkpoint at a path.
using OpenCheckpoint = std::function<std::shared_ptr<const Checkpoint>(const std::filesystem::path&)>;

/// Opens the checkpoint anew at each call.
///
/// Errors    as `Checkpoint`
[[nodiscard]] std::shared_ptr<const Checkpoint> open_checkpoint(const std::filesystem::path& path);

/// The array that a name on the command line refers to. The constructor parses the name, maps the file and
/// validates its header; elements are decoded on request. Copies share the open file.
///   X.npy                    NumPy formats 1.0 to 3.0, C or Fortran order, either byte order
///   X-ubyte, X-ubyte.gz, X.idx or X.idx.gz   IDX, the format of MNIST
///   X.npz:NAME               a member of a zip, stored or deflated (NAME with or without ".npy")
///   X.safetensors:TENSOR     a tensor; TENSOR[i] is its i-th slice along the first axis
///   X.safetensors.index.json:TENSOR or FOLDER:TENSOR   likewise
///   X.onnx:TENSOR, X.pt:TENSOR or X.gguf:TENSOR   likewise
///   X.pt:MEMBER:TENSOR   of the state dict MEMBER
///   1,2.5,-3 or 0,0;1,0;0,1  numbers written out: a row, or rows, unless a file has that name
class OpenedArray {
 public:
  /// `open` opens the checkpoint that holds a tensor, so that a caller can share it between names.
  ///
  /// Errors    Io, Format, Shape, Unsupported (object, string and structured dtypes), Argument for a
  ///           name that is not there; messages name the file
  explicit OpenedArray(std::string name, const OpenCheckpoint& open = open_checkpoint);
  /// An array of the caller's memory, which `stored.fetch` gives; `name` is what messages call it.
  OpenedArray(std::string name, StoredArray stored);

  /// As it was given.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<std::uint64_t>& shape() const { return shape_; }
  /// The element type in the file; F64 for numbers written out.
  [[nodiscard]] Dtype dtype() const { return dtype_; }
  [[nodiscard]] std::uint64_t elements() const { return elements_; }

  /// The file or folder in the name; empty for numbers written out.
  [[nodiscard]] const std::optional<std::filesystem::path>& file() const { return file_; }
  /// Whether the file contains this array alone: a `.npy` or an IDX file.
  [[nodiscard]] bool fills_file() const { return fills_file_; }
  /// The checkpoint that contains it as a tensor; null for other arrays.
  [[nodiscard]] const std::shared_ptr<const Checkpoint>& checkpoint() const { return checkpoint_; }
  /// The tensor's name in the checkpoint, or TENSOR[i]; empty for other arrays.
  [[nodiscard]] const std::string& tensor() const { return tensor_; }

  /// The elements, row-major and little-endian: in the file if it is mapped and they are stored so, else in
  /// `buffer`. They may be unaligned.
  ///
  /// Errors    Format for a member of a zip that is damaged; Unsupported for a dtype without decoder
  [[nodiscard]] std::span<const std::byte> bytes(std::vector<std::byte>& buffer) const;
  /// The elements as float64.
  ///
  /// Errors    as `bytes`
  [[nodiscard]] std::vector<double> values() const;
  /// The elements of a vector: at most one axis may be longer than 1, which is checked before the elements
  /// are read.
  ///
  /// Errors    as `bytes`; Shape for more axes
  [[nodiscard]] std::vector<double> row() const;

 private:
  std::string name_;
  std::optional<std::filesystem::path> file_{};
  bool fills_file_ = false;
  std::vector<std::uint64_t> shape_{};
  Dtype dtype_ = Dtype::F64;
  std::uint64_t elements_ = 0;
  std::shared_ptr<const Checkpoint> checkpoint_{};
  std::string tensor_{};
  StoredArray::Fetch fetch_{};  ///< keeps its file open

  struct Opener;
  void count();
};

/// Opens the array of that name and decodes it.
///
/// Errors    as `OpenedArray`
[[nodiscard]] Array read_array(const std::string& name);

}  // namespace normscope::files
