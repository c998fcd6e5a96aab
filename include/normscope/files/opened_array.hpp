#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/files/array.hpp>
#include <normscope/files/checkpoint.hpp>

namespace normscope::files {

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
  /// The same for a vector: at most one axis may be longer than 1, which is checked before the elements are
  /// read.
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
