#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/checkpoint/source.hpp>
#include <normscope/core/dtype.hpp>
#include <normscope/core/norm_spec.hpp>

namespace normscope::checkpoint {

/// One named tensor of an open checkpoint; a view, valid as long as the `Checkpoint` lives.
/// Row-major, little-endian.
struct Tensor {
  std::string_view name;
  Dtype dtype = Dtype::F32;
  std::span<const std::uint64_t> shape;
  StoredBytes bytes;

  /// Product of the shape; 1 for a scalar.
  [[nodiscard]] std::uint64_t elements() const;
};

/// A linear map that reads a norm's output, by the names of its tensors.
struct StatedReader {
  std::string weight;
  std::string bias{};   ///< empty for none
  bool in_out = false;  ///< whether the weight is stored [in, out]
};

/// A normalization layer that the file itself states, rather than leaving it to the names of tensors.
struct StatedNorm {
  std::string name;
  NormKind kind = NormKind::layer;
  std::uint64_t width = 0;
  double eps = 0.0;
  std::string gain{};      ///< tensor of `width` elements, empty for none
  std::string bias{};      ///< likewise
  std::int64_t axis = -1;  ///< normalized, counted from the end; -1 as well for several last ones as one
  std::vector<StatedReader> readers{};
};

/// A checkpoint open for reading: bytes → named tensor views. It knows nothing of architectures.
/// Files are memory-mapped, or read range by range where they are opened so, and validated in full before
/// the constructor returns, so a `Checkpoint` that exists is sound.
class Checkpoint {
 public:
  /// Opens a `.safetensors` file, a `.safetensors.index.json` with its shards, an ONNX model, a PyTorch
  /// zip, or a Hugging Face folder that holds `model.safetensors` or `model.safetensors.index.json` (or
  /// exactly one other `.safetensors` file, or else `pytorch_model.bin`).
  /// Of an ONNX model, tensors are the initializers and the Constant nodes, without strings. Of a PyTorch
  /// zip, they are the state dict, which is the whole or its "state_dict", "model_state_dict" or "model";
  /// nothing that its pickle names is run, and what names more than tensors take is refused.
  /// `open` opens the files that hold tensors. What it does not map is read as far as is needed: of a
  /// safetensors file its header; other formats as a whole.
  /// Errors    Io, Format, Shape, Unsupported, and Argument for a folder that leaves a choice of files:
  ///           each names file, tensor and expectation; Unsupported for an ONNX model or a PyTorch zip
  ///           beyond `largest_held` that is not mapped
  explicit Checkpoint(const std::filesystem::path& path, const OpenSource& open = map_file);
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  /// What was opened, as it was named.
  [[nodiscard]] const std::filesystem::path& path() const;
  /// Every file that holds tensors.
  [[nodiscard]] const std::vector<std::filesystem::path>& files() const;
  /// "safetensors", "onnx" or "pytorch".
  [[nodiscard]] std::string_view format() const;
  /// Tensors sorted by name.
  [[nodiscard]] std::span<const Tensor> tensors() const;
  /// The tensor of that name, or null.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
  /// Free-form metadata of the files (`__metadata__`, `metadata_props`); the first file's value where two
  /// files disagree.
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& metadata() const;
  /// The norms that the file states, in the order the forward pass meets them; only ONNX does.
  [[nodiscard]] std::span<const StatedNorm> stated_norms() const;
  /// Text of the `config.json` beside the weights, where there is one (at most 16 MiB).
  [[nodiscard]] const std::optional<std::string>& config_text() const;
  /// The file that holds `tensor`.
  [[nodiscard]] const std::filesystem::path& file_of(const Tensor& tensor) const;

 private:
  struct Contents;
  std::unique_ptr<Contents> contents_;
};

/// Elements [offset, offset + count) of `tensor`, flattened row-major, as float64.
/// Errors    Shape if the range leaves the tensor; Unsupported for a dtype without decoder, and for a result
///           beyond `largest_held`; Io where the file is not mapped
[[nodiscard]] std::vector<double> read(const Tensor& tensor, std::uint64_t offset, std::uint64_t count);
/// All elements of `tensor` as float64.
[[nodiscard]] std::vector<double> read(const Tensor& tensor);

}  // namespace normscope::checkpoint
