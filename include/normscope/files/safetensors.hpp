#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/file.hpp>
#include <normscope/files/checkpoint.hpp>

/// Layout of the safetensors format:
///   1. 8 bytes: header length n, unsigned, little-endian, n <= 100,000,000
///   2. n bytes: one JSON object, first byte '{', space padding allowed at the end;
///      name -> {"dtype", "shape", "data_offsets": [begin, end]}, and optionally
///      "__metadata__" -> {string: string}
///   3. the data: offsets count from its first byte, are in range, contiguous, without holes or
///      overlaps, and reach the file's last byte.
namespace normscope::files {

/// The validated contents of one safetensors file. The tensors' names, shapes and bytes point into `file` or
/// into the result; they stay valid when it is moved, not when it is copied. Of a file that is not in memory,
/// only the header is read.
///
/// Errors    Format, Shape; Unsupported for a string over 4 MiB or a header whose tensors and metadata
///           take more memory than the file's size plus 32 MiB; messages begin with `where`
///
/// Cost      O(header + tensors · log tensors); memory at most the file's size plus 64 MiB, and the header's
///           where it is read
struct SafetensorsContents {
  std::vector<Tensor> tensors;  ///< sorted by name
  std::map<std::string, std::string, std::less<>> metadata;
  std::vector<std::uint64_t> extents;  ///< referenced by the shapes of tensors
  std::vector<char> escaped_names;     ///< names that contain JSON escapes, decoded and concatenated
  std::vector<std::byte> header;       ///< of a file that is not in memory
};
[[nodiscard]] SafetensorsContents parse_safetensors(const StoredBytes& file, const std::string& where);

/// A tensor to write.
struct NewTensor {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

/// Name, type and shape of a tensor to write.
struct TensorHeader {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::uint64_t> shape;
};

/// A safetensors file that is written tensor by tensor, in any number of pieces, so that none has to be in
/// memory. It appears with `commit`, complete or not at all.
///
/// Errors    Argument for duplicate names; Shape for a size that overflows; Io
class SafetensorsWriter {
 public:
  /// Called with all bytes of the file in their order.
  using Watch = std::function<void(std::span<const std::byte>)>;

  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorHeader> tensors,
                    const std::map<std::string, std::string, std::less<>>& metadata = {}, Watch watch = {});

  /// The tensors in the order in which their bytes are to be written: by descending alignment, then by name.
  [[nodiscard]] std::span<const TensorHeader> order() const { return tensors_; }
  /// Appends bytes of the tensors in that order.
  void write(std::span<const std::byte> bytes);
  /// Requires  all bytes of all tensors are written
  void commit();

 private:
  std::vector<TensorHeader> tensors_;
  std::uint64_t missing_ = 0;  ///< bytes
  Watch watch_;
  AtomicFile file_;

  void append(std::span<const std::byte> bytes);
};

/// Writes `tensors` as one safetensors file, atomically: sorted by descending alignment and then by name,
/// with contiguous offsets and a header padded so that the data start 8-byte aligned.
///
/// Errors    Shape if bytes and shape × dtype disagree; Argument for duplicate names; Io
void write_safetensors(const std::filesystem::path& path, std::span<const NewTensor> tensors,
                       const std::map<std::string, std::string, std::less<>>& metadata = {});

}  // namespace normscope::files
