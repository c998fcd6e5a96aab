#include "readers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <normscope/core/dtype.hpp>
#include <normscope/core/error.hpp>
#include <normscope/files/json_value.hpp>

#include "packed_matrix.hpp"

namespace normscope::files {
namespace {

using Json = nlohmann::json;
using Shape = std::vector<std::uint64_t>;

constexpr std::uint64_t most_rows_or_columns = std::uint64_t{1} << 40U;

bool is_of_floats(Dtype dtype) { return dtype == Dtype::F32 || dtype == Dtype::F16 || dtype == Dtype::BF16; }

std::uint64_t blocks_in(std::uint64_t extent, std::uint64_t block) { return (extent - 1) / block + 1; }

/// The object of that name; null where it is something else.
const Json* object_in(const Json& root, const char* key) {
  const auto found = root.find(key);
  return found != root.end() && found->is_object() ? &*found : nullptr;
}

std::string text_in(const Json& object, const char* key, const char* unstated = "") {
  const auto found = object.find(key);
  return found == object.end() ? unstated : found->is_string() ? found->get<std::string>() : found->dump();
}

bool is_set(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

/// Finds the matrices of one scheme among the tensors of a checkpoint.
class Packer {
 public:
  Packer(const std::string& where, PlacedTensors placed, std::vector<std::unique_ptr<QuantizedSource>>& views)
      : where_(where), placed_(placed), views_(views) {}

  void add_mlx(const Json& stated) {
    each(".scales", [&](const std::string& stem, const Tensor& scales) {
      const Tensor* const weight = find(stem + ".weight");
      // A factor for a whole tensor is not read.
      if (weight == nullptr || weight->dtype != Dtype::U32 || find(stem + ".global_scale") != nullptr) return;
      add_mlx_matrix(stem, stated, *weight, scales);
    });
  }

  /// Hugging Face's fine-grained FP8.
  void add_fp8(const Json& stated) {
    std::optional<std::pair<std::uint64_t, std::uint64_t>> block;
    if (!stated.contains("weight_block_size")) {
      block = {128, 128};
    } else if (is_set(stated, "weight_block_size")) {
      block = block_of(stated["weight_block_size"], "weight_block_size");
    }
    each(".weight_scale_inv", [&](const std::string& stem, const Tensor& scales) {
      const Tensor* const weight = find(stem + ".weight");
      if (weight == nullptr || (weight->dtype != Dtype::F8_E4M3 && weight->dtype != Dtype::F8_E5M2)) return;
      Dtype type = scales.dtype;
      if (!is_of_floats(type) && type != Dtype::F8_E8M0) {
        reject(ErrorCode::Format, fmt::format("{} is {}, expected F32, BF16, F16 or F8_E8M0",
                                              quote(scales.name), to_string(type)));
      }
      add_bytes(*weight, scales, block ? *block : whole(*weight), "FP8", type);
    });
  }

  void add_compressed(const Json& stated) {
    const Json* const groups = object_in(stated, "config_groups");
    const Json* const scheme = groups == nullptr || groups->size() != 1 ? nullptr : &*groups->begin();
    const Json* const weights = scheme == nullptr ? nullptr : object_in(*scheme, "weights");
    if (weights == nullptr) return;
    const std::string strategy = text_in(*weights, "strategy");
    const std::uint64_t bits = whole_number(*weights, "config_groups.weights", "num_bits");
    each(".weight_scale", [&](const std::string& stem, const Tensor& scales) {
      const Tensor* const weight = find(stem + ".weight");
      const Tensor* const packed = find(stem + ".weight_packed");
      const bool is_integer = weight != nullptr && weight->dtype == Dtype::I8;
      if (!is_of_floats(scales.dtype) || find(stem + ".weight_g_idx") != nullptr) return;
      if (packed != nullptr && packed->dtype == Dtype::I32 && (bits == 2 || bits == 4 || bits == 8)) {
        return add_bits(stem, *packed, scales, *weights, strategy, bits);
      }
      const bool has_bytes = weight != nullptr && bits == 8 && weight->shape.size() == 2 &&
                             (is_integer || weight->dtype == Dtype::F8_E4M3);
      if (!has_bytes || find(stem + ".weight_zero_point") != nullptr) return;
      const std::optional<std::pair<std::uint64_t, std::uint64_t>> block =
          block_of_strategy(*weights, strategy, *weight);
      if (block) add_bytes(*weight, scales, *block, is_integer ? "INT8" : "FP8", scales.dtype);
    });
  }

  /// `packs_rows`: AWQ, else GPTQ.
  void add_transposed(const Json& stated, bool packs_rows) {
    const std::uint64_t bits = whole_number(stated, "quantization_config", "bits");
    if (bits != 4 && (packs_rows || (bits != 2 && bits != 8))) return;
    const bool of_whole_columns = stated.contains("group_size") && stated["group_size"] == -1;
    const std::uint64_t group =
        of_whole_columns ? 0 : whole_number(stated, "quantization_config", "group_size");
    const int zero_less = !packs_rows && text_in(stated, "checkpoint_format", "gptq") == "gptq" ? 1 : 0;
    each(".qweight", [&](const std::string& stem, const Tensor& codes) {
      add_transposed_matrix(stem, codes, bits, group, packs_rows, zero_less);
    });
  }

  /// Puts the decoded matrices into their places, and leaves out the other parts. Returns whether no part is
  /// left that stands for something else than it holds.
  bool replace() {
    std::vector<std::pair<Tensor, std::uint32_t>> kept;
    for (std::size_t i = 0; i < placed_.tensors.size(); ++i) {
      const Tensor& tensor = placed_.tensors[i];
      if (used_.contains(tensor.name)) continue;
      const auto found = decoded_.find(tensor.name);
      kept.emplace_back(found == decoded_.end() ? tensor : found->second, placed_.file_of[i]);
    }
    std::sort(kept.begin(), kept.end(),
              [](const auto& a, const auto& b) { return a.first.name < b.first.name; });
    placed_.tensors.clear();
    placed_.file_of.clear();
    for (const auto& [tensor, file] : kept) {
      if (!placed_.tensors.empty() && placed_.tensors.back().name == tensor.name) {
        reject(ErrorCode::Format, fmt::format("tensor {} is stored packed and unpacked", quote(tensor.name)));
      }
      placed_.tensors.push_back(tensor);
      placed_.file_of.push_back(file);
    }
    return std::none_of(placed_.tensors.begin(), placed_.tensors.end(), is_part);
  }

 private:
  using Block = std::pair<std::uint64_t, std::uint64_t>;  ///< rows and columns that share a scale

  static bool is_part(const Tensor& tensor) {
    constexpr std::string_view endings[] = {".scales",       ".weight_scale",    ".weight_scale_inv",
                                            ".qweight",      ".weight_packed",   ".input_scale",
                                            ".global_scale", ".activation_scale"};
    const bool is_byte_float = tensor.dtype == Dtype::F8_E4M3 || tensor.dtype == Dtype::F8_E5M2;
    return is_byte_float || tensor.dtype == Dtype::U32 ||
           std::any_of(std::begin(endings), std::end(endings),
                       [&](std::string_view ending) { return tensor.name.ends_with(ending); });
  }

  [[noreturn]] void reject(ErrorCode code, const std::string& what) const { fail(code, where_, what); }

  [[nodiscard]] const Tensor* find(std::string_view name) const {
    const std::vector<Tensor>& all = placed_.tensors;
    const auto at =
        std::lower_bound(all.begin(), all.end(), name,
                         [](const Tensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
    return at != all.end() && at->name == name ? &*at : nullptr;
  }

  /// Calls `add` with each tensor of that ending and with what is before it.
  template <typename Add>
  void each(std::string_view ending, const Add& add) {
    for (const Tensor& tensor : placed_.tensors) {
      if (!tensor.name.ends_with(ending)) continue;
      add(std::string(tensor.name.substr(0, tensor.name.size() - ending.size())), tensor);
    }
  }

  [[nodiscard]] std::uint64_t whole_number(const Json& object, const std::string& path,
                                           const char* key) const {
    const auto found = object.find(key);
    if (found != object.end() && found->is_number_unsigned()) {
      const auto number = found->get<std::uint64_t>();
      if (number >= 1 && number <= most_rows_or_columns) return number;
    }
    reject(ErrorCode::Format, fmt::format("\"{}.{}\" is {}, expected a whole number from 1", path, key,
                                          found == object.end() ? "missing" : quote(found->dump())));
  }

  [[nodiscard]] Block block_of(const Json& stated, const char* key) const {
    const auto is_extent = [](const Json& extent) {
      return extent.is_number_unsigned() && extent != 0 && extent <= most_rows_or_columns;
    };
    if (stated.is_array() && stated.size() == 2 && is_extent(stated[0]) && is_extent(stated[1])) {
      return {stated[0].get<std::uint64_t>(), stated[1].get<std::uint64_t>()};
    }
    reject(ErrorCode::Format,
           fmt::format("\"{}\" is {}, expected two whole numbers", key, quote(stated.dump())));
  }

  [[nodiscard]] Block whole(const Tensor& weight) const {
    expect_matrix(weight);
    return {weight.shape[weight.shape.size() - 2], weight.shape.back()};
  }

  void expect_matrix(const Tensor& tensor) const {
    if (tensor.shape.size() >= 2 && tensor.elements() != 0) return;
    reject(ErrorCode::Shape, fmt::format("{} has shape [{}], expected a matrix", quote(tensor.name),
                                         fmt::join(tensor.shape, ", ")));
  }

  void expect_shape(const Tensor& tensor, const Shape& expected, const std::string& why) const {
    if (std::equal(tensor.shape.begin(), tensor.shape.end(), expected.begin(), expected.end())) return;
    reject(ErrorCode::Shape, fmt::format("{} has shape [{}], expected [{}] {}", quote(tensor.name),
                                         fmt::join(tensor.shape, ", "), fmt::join(expected, ", "), why));
  }

  const Tensor& expect_type(const Tensor* tensor, const std::string& name, Dtype dtype) const {
    if (tensor == nullptr) reject(ErrorCode::Format, fmt::format("has no tensor {}", quote(name)));
    if (tensor->dtype != dtype) {
      reject(ErrorCode::Format,
             fmt::format("{} is {}, expected {}", quote(name), to_string(tensor->dtype), to_string(dtype)));
    }
    return *tensor;
  }

  void add_mlx_matrix(const std::string& stem, const Json& whole, const Tensor& weight,
                      const Tensor& scales) {
    const auto own = whole.find(stem);
    std::string path = "quantization";
    const Json* stated = &whole;
    if (own != whole.end() && own->is_object()) {
      stated = &*own;
      path += "." + stem;
    } else if (own != whole.end() && *own != true) {
      reject(ErrorCode::Format, fmt::format("\"quantization\" says that {} is not quantized, but it has {}",
                                            quote(stem), quote(scales.name)));
    }
    const std::uint64_t group = whole_number(*stated, path, "group_size");
    const std::uint64_t bits = whole_number(*stated, path, "bits");
    const std::string mode = text_in(*stated, "mode", "affine");
    Coding coding = mlx_coding(path, mode, group, bits, scales);
    const bool is_affine = mode == "affine";
    const Tensor* const biases = find(stem + ".biases");
    if (is_affine != (biases != nullptr)) {
      reject(ErrorCode::Format,
             fmt::format("{} {} {}.biases, which mode \"{}\" {}", quote(weight.name),
                         is_affine ? "has no" : "has", stem, mode, is_affine ? "needs" : "does not have"));
    }
    const std::uint64_t last = weight.shape.empty() ? 0 : weight.shape.back();
    Shape shape(weight.shape.begin(), weight.shape.end());
    Shape of_scales = shape;
    const bool fits = weight.shape.size() >= 2 && weight.elements() != 0 && last <= most_rows_or_columns &&
                      last * 32 % bits == 0 && last * 32 / bits % group == 0;
    if (fits) {
      shape.back() = last * 32 / bits;
      of_scales.back() = shape.back() / group;
    }
    if (!fits || !std::equal(of_scales.begin(), of_scales.end(), scales.shape.begin(), scales.shape.end())) {
      reject(ErrorCode::Shape,
             fmt::format("{} [{}] and {} [{}] do not fit to the {} bits in groups of {} that \"{}\" states",
                         quote(weight.name), fmt::join(weight.shape, ", "), quote(scales.name),
                         fmt::join(scales.shape, ", "), bits, group, path));
    }
    if (biases != nullptr) {
      expect_type(biases, std::string(biases->name), scales.dtype);
      expect_shape(*biases, of_scales, "as its scales have");
    }
    take(weight.name,
         bit_stream(
             std::string(weight.name), std::move(shape), std::move(coding),
             {.bits = static_cast<unsigned>(bits), .codes = &weight, .scales = &scales, .biases = biases}),
         {&scales, biases});
  }

  [[nodiscard]] Coding mlx_coding(const std::string& path, const std::string& mode, std::uint64_t group,
                                  std::uint64_t bits, const Tensor& scales) const {
    const auto expect = [&](bool holds, const std::string& expected) {
      if (holds) return;
      reject(ErrorCode::Unsupported,
             fmt::format("\"{}\" states mode \"{}\", {} bits and groups of {}, expected {}", path, mode, bits,
                         group, expected));
    };
    const auto expect_scales = [&](bool holds, const char* expected) {
      if (holds) return;
      reject(ErrorCode::Format, fmt::format("{} is {}, expected {} in mode \"{}\"", quote(scales.name),
                                            to_string(scales.dtype), expected, mode));
    };
    if (mode == "affine") {
      expect(bits >= 2 && bits <= 8 && bits != 7, "2, 3, 4, 5, 6 or 8 bits");
      expect(group == 32 || group == 64 || group == 128, "groups of 32, 64 or 128");
      expect_scales(is_of_floats(scales.dtype), "F32, F16 or BF16");
      // The scale is chosen so that the end of the larger magnitude and zero are codes, which moves the other
      // end by a step at most.
      return {.name = fmt::format("MLX-{}bit-g{}", bits, group),
              .levels = integers(static_cast<unsigned>(bits)),
              .group = group,
              .group_bytes = group * bits / 8 + 2 * normscope::bits(scales.dtype) / 8,
              .scales = scales.dtype,
              .clipped_steps = 1.0};
    }
    const bool has_four_bits = mode == "mxfp4" || mode == "nvfp4";
    if (has_four_bits) {
      expect(bits == 4 && group == (mode == "mxfp4" ? 32U : 16U), "4 bits, groups of 32 (nvfp4: of 16)");
    } else {
      expect(mode == "mxfp8" && bits == 8 && group == 32,
             "mode affine, mxfp4, nvfp4, or mxfp8 with 8 bits and groups of 32");
    }
    Coding coding{.name = "MLX-" + mode,
                  .levels = has_four_bits ? floats_of_four_bits() : values_of(Dtype::F8_E4M3),
                  .group = group,
                  .group_bytes = group * bits / 8 + 1,
                  .rounds_scale = false};
    expect_scales(scales.dtype == Dtype::U8, "U8");
    coding.scales = mode == "nvfp4" ? Dtype::F8_E4M3 : Dtype::F8_E8M0;
    if (mode == "nvfp4") {
      // The largest level times what rounding takes from a scale of three bits of mantissa.
      coding.clipped_units = 6.0;
      coding.least_scale_spacing = 0x1p-10;
    }
    return coding;
  }

  /// The rows and columns that share a scale of compressed-tensors; empty for a strategy that is not read.
  [[nodiscard]] std::optional<Block> block_of_strategy(const Json& weights, const std::string& strategy,
                                                       const Tensor& weight) const {
    expect_matrix(weight);
    if (strategy == "tensor") return whole(weight);
    if (strategy == "channel") return Block{1, weight.shape.back()};
    if (strategy == "group") return Block{1, whole_number(weights, "config_groups.weights", "group_size")};
    if (strategy == "block" && is_set(weights, "block_structure")) {
      return block_of(weights["block_structure"], "block_structure");
    }
    return std::nullopt;
  }

  /// Codes of a byte with scales of blocks.
  void add_bytes(const Tensor& weight, const Tensor& scales, Block block, const char* type,
                 Dtype scale_type) {
    expect_matrix(weight);
    const auto [whole_rows, whole_columns] = whole(weight);
    const bool is_whole = block.first >= whole_rows && block.second >= whole_columns;
    Shape expected(weight.shape.begin(), weight.shape.end());
    expected.back() = blocks_in(whole_columns, block.second);
    expected[expected.size() - 2] = blocks_in(whole_rows, block.first);
    // One scale may have any number of axes of length 1.
    if (!is_whole || weight.shape.size() > 2 || scales.elements() != 1) {
      expect_shape(scales, expected,
                   fmt::format("for blocks of {} x {} of {}", block.first, block.second, quote(weight.name)));
    }
    const bool is_integer = weight.dtype == Dtype::I8;
    Coding coding{.name = is_whole           ? fmt::format("{}-tensor", type)
                          : block.first == 1 ? block.second >= whole_columns
                                                   ? fmt::format("{}-channel", type)
                                                   : fmt::format("{}-g{}", type, block.second)
                                             : fmt::format("{}-{}x{}", type, block.first, block.second),
                  .levels = values_of(weight.dtype),
                  .group = std::min(block.second, whole_columns),
                  .group_bytes = std::min(block.second, whole_columns),
                  .scales = scale_type,
                  .clipped_steps = is_integer ? 1.0 : 0.0};
    // Codes are chosen after a scale is rounded to a power of two.
    if (scale_type == Dtype::F8_E8M0) coding.rounds_scale = false;
    take(weight.name,
         byte_codes(std::string(weight.name), std::move(coding), weight, scales,
                    std::min(block.first, whole_rows)),
         {&scales});
  }

  /// Codes of a few bits of compressed-tensors.
  void add_bits(const std::string& stem, const Tensor& packed, const Tensor& scales, const Json& weights,
                const std::string& strategy, std::uint64_t bits) {
    const std::string name = stem + ".weight_shape";
    const Tensor& stored_shape = expect_type(find(name), name, Dtype::I64);
    expect_shape(stored_shape, {2}, "for the shape of a matrix");
    const std::vector<double> extents = files::read(stored_shape);
    const bool in_range =
        extents[0] >= 1.0 && extents[1] >= 1.0 && extents[0] <= 0x1p40 && extents[1] <= 0x1p40;
    if (!in_range) {
      reject(ErrorCode::Shape, fmt::format("{} holds {} and {}, expected rows and columns", quote(name),
                                           extents[0], extents[1]));
    }
    const Shape shape = {static_cast<std::uint64_t>(extents[0]), static_cast<std::uint64_t>(extents[1])};
    const std::uint64_t group = strategy == "channel" ? shape[1]
                                : strategy == "group"
                                    ? whole_number(weights, "config_groups.weights", "group_size")
                                    : 0;
    if (group == 0) return;
    expect_shape(packed, {shape[0], blocks_in(shape[1] * bits, 32)}, "for its weight_shape");
    expect_shape(scales, {shape[0], blocks_in(shape[1], group)}, fmt::format("for groups of {}", group));
    const Tensor* zero_points = find(stem + ".weight_zero_point");
    if (zero_points != nullptr) {
      expect_type(zero_points, std::string(zero_points->name), Dtype::I32);
      expect_shape(*zero_points, {blocks_in(shape[0] * bits, 32), scales.shape[1]}, "packed along rows");
    }
    Coding coding{
        .name = fmt::format("INT{}-{}", bits,
                            group >= shape[1] ? std::string("channel") : fmt::format("g{}", group)),
        .levels = integers(static_cast<unsigned>(bits), true),
        .group = std::min(group, shape[1]),
        .group_bytes = (std::min(group, shape[1]) * bits + 7) / 8 + normscope::bits(scales.dtype) / 8,
        .scales = scales.dtype,
        .adds_zero = zero_points != nullptr,
        .clipped_steps = 1.0};
    take(packed.name,
         bit_stream(stem + ".weight", shape, std::move(coding),
                    {.bits = static_cast<unsigned>(bits),
                     .codes = &packed,
                     .scales = &scales,
                     .zero_points = zero_points}),
         {&scales, &stored_shape, zero_points});
  }

  void add_transposed_matrix(const std::string& stem, const Tensor& codes, std::uint64_t bits,
                             std::uint64_t stated_group, bool packs_rows, int zero_less) {
    const std::uint64_t in_word = 32 / bits;
    expect_type(&codes, std::string(codes.name), Dtype::I32);
    expect_matrix(codes);
    if (codes.shape.size() != 2) expect_shape(codes, {codes.shape[0], codes.shape[1]}, "");
    const std::uint64_t rows = packs_rows ? codes.shape[1] * in_word : codes.shape[1];
    const std::uint64_t columns = packs_rows ? codes.shape[0] : codes.shape[0] * in_word;
    const std::uint64_t group = stated_group == 0 ? columns : stated_group;
    const std::uint64_t groups = blocks_in(columns, group);
    const Tensor* const scales = find(stem + ".scales");
    if (scales == nullptr) reject(ErrorCode::Format, fmt::format("has no tensor \"{}.scales\"", stem));
    if (!is_of_floats(scales->dtype)) expect_type(scales, stem + ".scales", Dtype::F16);
    expect_shape(*scales, {groups, rows}, fmt::format("for groups of {}", group));
    const Tensor& zeros = expect_type(find(stem + ".qzeros"), stem + ".qzeros", Dtype::I32);
    expect_shape(zeros, {groups, blocks_in(rows, in_word)}, fmt::format("for groups of {}", group));
    const Tensor* const order = find(stem + ".g_idx");
    std::vector<std::uint32_t> group_of;
    if (order != nullptr) {
      expect_type(order, stem + ".g_idx", Dtype::I32);
      expect_shape(*order, {columns}, "for the group of each column");
      for (const double number : files::read(*order)) {
        if (number < 0.0 || number >= static_cast<double>(groups)) {
          reject(ErrorCode::Format,
                 fmt::format("{} has group {}, expected less than {}", quote(order->name), number, groups));
        }
        group_of.push_back(static_cast<std::uint32_t>(number));
      }
      bool is_plain = true;
      for (std::uint64_t i = 0; i < columns; ++i) is_plain = is_plain && group_of[i] == i / group;
      if (is_plain) group_of.clear();
    }
    Coding coding{.name = fmt::format("{}-{}bit-{}", packs_rows ? "AWQ" : "GPTQ", bits,
                                      group >= columns ? std::string("channel") : fmt::format("g{}", group)),
                  .levels = integers(static_cast<unsigned>(bits)),
                  .group = std::min(group, columns),
                  .group_bytes = std::min(group, columns) * bits / 8 + normscope::bits(scales->dtype) / 8,
                  .scales = scales->dtype,
                  .adds_zero = true,
                  // GPTQ makes up for errors in later columns; AWQ clips the range where that is better.
                  .is_nearest = packs_rows,
                  .clipped_steps = packs_rows ? 15.0 : 1.0};
    take(codes.name,
         transposed(stem + ".weight", {rows, columns}, std::move(coding),
                    {.bits = static_cast<unsigned>(bits),
                     .packs_rows = packs_rows,
                     .codes = &codes,
                     .scales = scales,
                     .zero_points = &zeros,
                     .zero_less = zero_less},
                    std::move(group_of)),
         {scales, &zeros, order});
  }

  /// Puts the matrix in the place of the tensor of that name, and leaves out `parts`.
  void take(std::string_view place, std::unique_ptr<PackedMatrix> matrix,
            std::initializer_list<const Tensor*> parts) {
    for (const Tensor* part : parts) {
      if (part != nullptr) used_.insert(part->name);
    }
    decoded_.emplace(place, matrix->tensor());
    views_.push_back(std::move(matrix));
  }

  const std::string& where_;
  PlacedTensors placed_;
  std::vector<std::unique_ptr<QuantizedSource>>& views_;
  std::set<std::string_view> used_{};
  std::map<std::string_view, Tensor> decoded_{};  ///< by their place
};

/// Adds the matrices of the scheme that a configuration states, and returns its name.
std::string_view add_matrices(const Json& root, Packer& packer) {
  const Json* const mlx = object_in(root, "quantization");
  if (mlx != nullptr && mlx->contains("bits") && !mlx->contains("quant_method")) {
    packer.add_mlx(*mlx);
    return "mlx";
  }
  const Json* stated = object_in(root, "quantization_config");
  if (const Json* const text = object_in(root, "text_config"); stated == nullptr && text != nullptr) {
    stated = object_in(*text, "quantization_config");
  }
  if (stated == nullptr) return {};
  const std::string method = text_in(*stated, "quant_method");
  if (method == "fp8") {
    if (text_in(*stated, "expert_dtype", "fp8") != "fp8") return {};
    packer.add_fp8(*stated);
    return "fp8";
  }
  if (method == "compressed-tensors") {
    constexpr const char* others[] = {"kv_cache_scheme", "transform_config"};
    if (std::any_of(std::begin(others), std::end(others),
                    [&](const char* key) { return is_set(*stated, key) && !(*stated)[key].empty(); })) {
      return {};
    }
    packer.add_compressed(*stated);
    return "compressed-tensors";
  }
  if (!stated->contains("bits")) return {};
  if (method == "gptq") {
    const std::string format = text_in(*stated, "checkpoint_format", "gptq");
    if (format != "gptq" && format != "gptq_v2") return {};
    packer.add_transposed(*stated, false);
    return "gptq";
  }
  if (method == "awq" && text_in(*stated, "version", "gemm") == "gemm") {
    packer.add_transposed(*stated, true);
    return "awq";
  }
  return {};
}

}  // namespace

std::string_view decode_packed(std::string_view config, const std::string& where, PlacedTensors placed,
                               std::vector<std::unique_ptr<QuantizedSource>>& views) {
  const std::optional<Json> root = read_json(config);
  if (!root || !root->is_object()) return {};
  Packer packer(where, placed, views);
  const std::string_view scheme = add_matrices(*root, packer);
  return packer.replace() ? scheme : std::string_view();
}

}  // namespace normscope::files
