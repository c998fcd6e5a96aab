#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/core/file.hpp>
#include <normscope/files/source.hpp>

namespace normscope::files {

/// A type that stores `elements` consecutive elements of a row in `bytes` bytes, such as GGUF's Q4_K.
struct BlockFormat {
  std::string_view name;
  std::uint64_t elements = 1;
  std::uint64_t bytes = 1;
};

/// What the block of a quantized element can represent, with the scales that it stores.
struct QuantizedElement {
  double value = 0.0;
  double below = 0.0, above = 0.0;  ///< distances to the values of the neighbouring codes, 0 at an end
  double step = 0.0;                ///< of the codes at the end, for an element at an end
  double rounding = 0.0;            ///< error that rounding the stored scales adds to the value
  /// How far an original may lie beyond an end of the block's range: scales have a resolution, and quantizers
  /// may clip.
  double beyond = 0.0;
};

/// Elements of a tensor in blocks, decoded to little-endian float32 as they are asked for.
class QuantizedSource : public Source {
 public:
  /// Describes elements [first, first + out.size()), flattened row-major.
  ///
  /// Errors    Io
  virtual void describe(std::uint64_t first, std::span<QuantizedElement> out) const = 0;
  /// Whether codes are chosen after the scales that are stored, so that each is the nearest one; else an
  /// element may have the code next to the nearest.
  [[nodiscard]] virtual bool is_nearest() const = 0;
};

/// One named tensor of an open checkpoint; a view, valid as long as the `Checkpoint` lives.
/// Row-major, little-endian.
struct Tensor {
  std::string_view name;
  Dtype dtype = Dtype::F32;
  std::span<const std::uint64_t> shape;
  StoredBytes bytes;
  /// How the file stores the tensor, if in blocks; `dtype` and `bytes` are then those of its decoded
  /// elements.
  const BlockFormat* blocks = nullptr;
  /// Decodes the blocks; null for others, and for a type that is not read.
  const QuantizedSource* quantized = nullptr;

  /// Product of the shape; 1 for a scalar.
  [[nodiscard]] std::uint64_t elements() const;
  /// The type in the file, such as "F32" or "Q4_K".
  [[nodiscard]] std::string_view stored_type() const;
  /// Number of bytes in the file.
  [[nodiscard]] std::uint64_t stored_bytes() const;
  /// Whether `read` supports it.
  [[nodiscard]] bool is_decodable() const;
};

class OnnxGraph;

/// A checkpoint open for reading, as named tensor views. It does not interpret architectures. Files are
/// memory-mapped, or read in ranges if they are opened so, and validated in full before the constructor
/// returns. Quantized matrices are tensors that decode what they store (GGUF's blocks, MLX's groups).
class Checkpoint {
 public:
  /// The tensors of an ONNX model are its initializers and Constant nodes, without strings. Those of a
  /// PyTorch file are a state dict: the whole file, the only member of it that holds tensors, or the one that
  /// FILE:MEMBER names, such as "run.pt:ema/module"; no code that its pickle names is run, and names that
  /// tensors do not need are refused. A GGUF model in several files is opened by any of them. `open` opens
  /// the files that hold tensors. A file that it does not map is read as far as needed: safetensors, GGUF and
  /// ONNX files and PyTorch's zips by what says where tensors are, and by tensor; other formats as a whole.
  ///
  /// Errors    Io, Format, Shape, Unsupported, and Argument for a folder in which several files could be
  ///           meant; each names file, tensor and expectation; Unsupported for a file beyond `largest_held`
  ///           that is not mapped and would be read as a whole
  explicit Checkpoint(const std::filesystem::path& path, const OpenSource& open = map_file);
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  /// The path that was opened, as given.
  [[nodiscard]] const std::filesystem::path& path() const;
  /// Every file that holds tensors.
  [[nodiscard]] const std::vector<std::filesystem::path>& files() const;
  /// The name of the format in lower case, such as "safetensors"; "pytorch" for every kind of PyTorch file.
  [[nodiscard]] std::string_view format() const;
  /// Tensors sorted by name.
  [[nodiscard]] std::span<const Tensor> tensors() const;
  /// The tensor of that name, or null.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
  /// Free-form metadata of the files (`__metadata__`, `metadata_props`, GGUF's entries); the first file's
  /// value if files disagree.
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& metadata() const;
  /// The graph that an ONNX file states; null for other formats.
  [[nodiscard]] const OnnxGraph* graph() const;
  /// Text of the `config.json` next to the weights, if it exists (at most 16 MiB).
  [[nodiscard]] const std::optional<std::string>& config_text() const;
  /// The scheme by which `config.json` says that matrices are packed, such as "mlx", if it is one whose
  /// matrices are decoded; then `tensors` has one tensor for the codes and scales of each.
  [[nodiscard]] std::string_view quantization() const;
  /// The file that holds `tensor`, its codes if it is packed.
  [[nodiscard]] const std::filesystem::path& file_of(const Tensor& tensor) const;

 private:
  struct Contents;
  std::unique_ptr<Contents> contents_;
};

/// Elements [offset, offset + count) of `tensor`, flattened row-major, as float64.
///
/// Errors    Shape if the range leaves the tensor; Unsupported for a dtype without decoder, and for a result
///           beyond `largest_held`; Io where the file is not mapped
[[nodiscard]] std::vector<double> read(const Tensor& tensor, std::uint64_t offset, std::uint64_t count);
/// All elements of `tensor` as float64.
[[nodiscard]] std::vector<double> read(const Tensor& tensor);

/// Whether a file of that name holds weights: of a format that `Checkpoint` opens, or of one that has to be
/// converted or exported first.
[[nodiscard]] bool holds_weights(const std::filesystem::path& file);

/// Reads the files of the checkpoint whose format holds checksums, PyTorch's zips, through and compares them.
/// Opening a checkpoint does not, because it maps its elements without reading them.
/// Errors    Format, naming the file and its member
void check_sums(const Checkpoint& checkpoint);

/// The checkpoint at that path, opened by `open` or, without it, as `open_checkpoint` does. Its files and
/// configuration are noted before they are opened. Before a result is written, `noted.expect()` tells whether
/// they are still the same: of a file that another process overwrites meanwhile, numbers would be of two
/// files, or of none.
///
/// Errors    as `Checkpoint`
[[nodiscard]] Checkpoint open_noted(const std::filesystem::path& path, UnchangedFiles& noted,
                                    const OpenSource& open = {});

}  // namespace normscope::files
