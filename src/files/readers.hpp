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
#include <normscope/files/source.hpp>
#include <normscope/files/zip.hpp>

#include "parsed_file.hpp"

namespace normscope::files {

/// Reads a file with one array front to back, gzipped or not.
///
/// Errors    Format; Unsupported where more than `most_unpacked` bytes are read; messages begin with `where`
class PackedSource {
 public:
  PackedSource(std::span<const std::byte> bytes, std::string where);
  PackedSource(const PackedSource&) = delete;
  PackedSource& operator=(const PackedSource&) = delete;
  ~PackedSource();

  /// Throws if the file cannot contain that many bytes, or if they are more than are unpacked from a file of
  /// its size.
  void require(std::uint64_t size) const;
  /// Fills `out` with the next bytes.
  void read(std::span<std::byte> out);
  /// Reads up to `out.size()` of the next bytes and returns their number.
  std::size_t take(std::span<std::byte> out);
  /// Throws unless everything has been read.
  void finish();

 private:
  std::span<const std::byte> bytes_;
  std::string where_;
  std::size_t at_ = 0;  ///< bytes taken
  struct Inflater;
  std::unique_ptr<Inflater> inflater_;  ///< null for an uncompressed file
};

/// An IDX file's array, its elements unpacked and little-endian.
struct IdxElements {
  std::vector<std::uint64_t> shape;
  Dtype dtype = Dtype::F64;
  std::vector<std::byte> bytes;
};

/// As `read_idx`, without decoding.
[[nodiscard]] IdxElements read_idx_elements(std::span<const std::byte> bytes, const std::string& where);

/// Opens a file in the model's folder, by its name, that holds elements of the tensor of that name.
using OpenExternal = std::function<StoredBytes(std::string_view tensor, const std::string& file)>;

/// The tensor in a TensorProto, named `name` if that is not empty. Elements stored in memory layout become a
/// part of `message`; others are decoded into the arena. Elements in another file are a view of what
/// `external` opens. Empty for strings.
///
/// Errors    Format, Shape, also for another file that is not in the model's folder; Unsupported for data in
///           another file without `external`, and for types without a Dtype; messages begin with `where`
[[nodiscard]] std::optional<Tensor> read_onnx_tensor(const StoredBytes& message, std::string_view name,
                                                     Arena& arena, const std::string& where,
                                                     const OpenExternal& external = {});

// The format of llama.cpp's models:
//   "GGUF", version (uint32), number of tensors and of metadata entries (uint64)
//   metadata: key, type, value; numbers, booleans, strings, and arrays of these
//   tensors: name, number of dimensions, dimensions (fastest first), type, offset
//   the data, at the next multiple of "general.alignment" (32): tensors in order, each at such a multiple

/// The contents of a GGUF file of version 2 or 3. The data are not read: tensors of plain elements are parts
/// of `file`, tensors in blocks are views that decode on reading. Shapes are row-major, the slowest axis
/// first. Metadata values are JSON text, strings without quotes; of arrays of strings or of more than 4096
/// numbers, only the length is kept.
///
/// Errors    Format, Shape; Unsupported for other versions, big-endian files, unknown types of tensors and a
///           header that needs more memory than the file's size plus 32 MiB; messages begin with `where`
///
/// Cost      O(header + tensors · log tensors)
[[nodiscard]] ParsedFile parse_gguf(const StoredBytes& file, const std::string& where);

struct GgufBlocks;

/// How a tensor of a GGUF file is stored.
struct GgufType {
  std::uint32_t number = 0;           ///< ggml's
  std::optional<Dtype> dtype{};       ///< of elements that are stored one by one
  BlockFormat blocks{};               ///< else, of blocks of elements
  const GgufBlocks* codes = nullptr;  ///< how blocks are decoded; null for a type that is not read
};

/// The type of that number, or null.
[[nodiscard]] const GgufType* gguf_type(std::uint32_t number);

/// The elements of whole blocks of that type; null if it is not read. Both outlive the result.
[[nodiscard]] std::unique_ptr<QuantizedSource> decoded_blocks(const GgufType& type, StoredBytes stored);

// Models that are split into several GGUF files, named STEM-00001-of-00003.gguf and so on.

struct GgufPart {
  std::string stem;
  std::uint64_t number = 0;  ///< from 1
  std::uint64_t count = 0;

  /// The name of part `other`.
  [[nodiscard]] std::string name(std::uint64_t other) const;
};

/// The part that a file name states; empty for other names.
[[nodiscard]] std::optional<GgufPart> gguf_part(const std::string& name);

/// The files of the model, of which `path` with that metadata is one, in order: `path` alone unless
/// "split.count" says otherwise. All are in the folder of `path`.
///
/// Errors    Format if "split.no" and "split.count" are not those of the name
[[nodiscard]] std::vector<std::filesystem::path> gguf_files(
    const std::filesystem::path& path, const std::map<std::string, std::string, std::less<>>& metadata);

// Weights in the `.npz` file that numpy.savez or savez_compressed writes: a zip of `.npy` members.

/// Whether all of these members are arrays.
[[nodiscard]] bool is_npz(std::span<const ZipMember> members);

/// The arrays of an `.npz` file in memory, named without ".npy". Arrays that are stored row-major and
/// little-endian remain in place; others are unpacked on reading, and the most recent ones are cached.
/// Arrays of text or objects are refused.
///
/// Errors    Format, Shape, Unsupported; messages begin with `where`
///
/// Cost      O(members · log members); elements in place are not read
[[nodiscard]] ParsedFile parse_npz(std::span<const std::byte> bytes, std::span<const ZipMember> members,
                                   const std::string& where);

// The supported part of ONNX: a ModelProto with one GraphProto, whose initializers and Constant nodes are
// the tensors.

/// The tensors and the graph of an `.onnx` file. Tensors of strings are left out. Elements of initializers
/// that are stored in memory layout are parts of `stored`, and those in another file of what `external`
/// opens; of a file that is not in memory, they are not read.
///
/// Errors    Format, Shape, Unsupported, Io; messages begin with `where`
///
/// Cost      O(nodes + tensors · log tensors), and sorting the names of the graph's values
[[nodiscard]] ParsedFile parse_onnx(const StoredBytes& stored, const std::string& where,
                                    const OpenExternal& external = {});

// The format of torch.save: a zip of stored members
//   PREFIX/data.pkl     a pickle; tensors name storages by key
//   PREFIX/data/KEY     the storages' elements
//   PREFIX/byteorder    "little"; newer files only

/// Whether a zip with these members was written by PyTorch, recognised by its pickle.
[[nodiscard]] bool is_torch_zip(std::span<const ZipMember> members);

/// The state dict of a PyTorch zip, or the one that `member` names (`add_torch_tensors`). Row-major tensors
/// are parts of `stored`, of which only the directory, the pickle and the headers of storages are read;
/// others are copied into the arena.
///
/// Errors    Format, Shape, Io; Unsupported for a pickle that names code not needed for tensors,
///           for compressed members and other zips; messages begin with `where`
///
/// Cost      O(pickle + members · log members + elements copied); the CRC of elements is not checked
[[nodiscard]] ParsedFile parse_torch_zip(const StoredBytes& stored, const std::string& where,
                                         std::string_view member = {});

// The format of torch.save before PyTorch 1.6: five pickles, then storages.
//   1. a magic number   2. the version, 1001   3. properties of the machine, such as "little_endian"
//   4. the object; tensors name storages by key   5. the keys of the storages, in their order
//   for each key: number of elements (int64), elements

/// The state dict of such a file in memory, or the one that `member` names (`add_torch_tensors`). Row-major
/// tensors are views; others are copied into the arena.
///
/// Errors    Format, Shape; Unsupported for a pickle that is not one of torch.save, or that names code not
///           needed for tensors, for files of big-endian machines, and for storages that are parts of others
///           (PyTorch 0.3 and before); messages begin with `where`
[[nodiscard]] ParsedFile parse_torch_legacy(std::span<const std::byte> bytes, const std::string& where,
                                            std::string_view member = {});

// Matrices that a folder stores as packed codes with scales beside them, as its config.json states:
//   MLX   "quantization": {"group_size", "bits", "mode"}, and for modules of their own "NAME": {...}
//         NAME.weight (uint32, [..., columns · bits / 32]): codes, lowest bits first, across words
//         NAME.scales and NAME.biases ([..., columns / group_size]): value = scale · code + bias
//         modes mxfp4, mxfp8 and nvfp4: value = scale · float of 4 or 8 bits, scales of 8 bits, no biases
//   "quantization_config" with "quant_method"
//   fp8   NAME.weight (float of 8 bits), NAME.weight_scale_inv, one for "weight_block_size" rows and columns
//   compressed-tensors   one group of "config_groups": NAME.weight (float or integer of 8 bits) or
//         NAME.weight_packed (int32, codes less 2^(bits − 1)) and NAME.weight_shape; NAME.weight_scale of a
//         tensor, a row, a group or a block; NAME.weight_zero_point
//   gptq, awq   NAME.qweight, NAME.qzeros, NAME.scales, NAME.g_idx: value = scale · (code − zero point), of
//   the
//         transposed matrix; zero points of gptq are stored less 1

/// Tensors, and the number of the file of each.
struct PlacedTensors {
  std::vector<Tensor>& tensors;  ///< sorted by name
  std::vector<std::uint32_t>& file_of;
};

/// Puts in place of the parts of each such matrix one tensor "NAME.weight" that decodes them as it is read;
/// `views` keeps the decoders. What is packed in other ways remains as it is stored. Returns the name of the
/// scheme that `config`, the text of config.json, states, if it is one of these and nothing else remains.
///
/// Errors    Format, Shape, Unsupported where parts do not fit to each other or to what is stated; messages
///           begin with `where`
[[nodiscard]] std::string_view decode_packed(std::string_view config, const std::string& where,
                                             PlacedTensors placed,
                                             std::vector<std::unique_ptr<QuantizedSource>>& views);

}  // namespace normscope::files
