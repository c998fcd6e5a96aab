#include "packed_weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <normscope/core/dtype.hpp>
#include <normscope/core/error.hpp>
#include <normscope/files/json_value.hpp>

namespace normscope::files {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t elements_of_tile = std::uint64_t{1} << 17U;

/// The values of floats of four bits: two of exponent, one of mantissa.
constexpr std::array<float, 16> e2m1 = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                        -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

std::vector<float> integers(unsigned bits) {
  std::vector<float> result(std::size_t{1} << bits);
  for (std::size_t code = 0; code < result.size(); ++code) result[code] = static_cast<float>(code);
  return result;
}

/// The values of all codes of a type of one byte.
std::vector<float> values_of(Dtype dtype) {
  std::array<std::byte, 256> codes;
  for (std::size_t code = 0; code < codes.size(); ++code) codes[code] = static_cast<std::byte>(code);
  std::array<double, 256> values;
  decode(dtype, codes, values);
  return {values.begin(), values.end()};
}

/// Half the distance between neighbours in a floating-point type, at most.
double half_spacing(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::F16: return std::max(0x1p-11 * std::abs(value), 0x1p-25);
    case Dtype::BF16: return 0x1p-8 * std::abs(value);
    default: return 0x1p-24 * std::abs(value);
  }
}

/// What codes stand for in units of the scale, and what a quantizer leaves.
struct Coding {
  std::string name;
  std::vector<float> levels;  ///< of each code
  std::uint64_t group = 1;    ///< columns that share a scale
  std::uint64_t group_bytes = 1;
  Dtype scales = Dtype::F32;
  bool rounds_scale = true;  ///< codes are chosen before the scale is rounded to its type
  /// How far beyond an end of a group's range an original may lie: in steps there, and in units of the scale.
  double clipped_steps = 0.0;
  double clipped_units = 0.0;
  double least_scale_spacing = 0.0;  ///< half of it, for scales of 8 bits
};

/// The distances of a level to its neighbours, 0 at an end.
struct Neighbours {
  float below = 0.0F, above = 0.0F;
  float nearest = 0.0F;
};

std::vector<Neighbours> neighbours_of(std::span<const float> levels) {
  std::set<float> ordered;
  for (const float level : levels) {
    if (std::isfinite(level)) ordered.insert(level);
  }
  std::vector<Neighbours> result(levels.size());
  for (std::size_t code = 0; code < levels.size(); ++code) {
    const auto at = ordered.find(levels[code]);
    if (!std::isfinite(levels[code]) || at == ordered.end()) continue;
    Neighbours& found = result[code];
    if (at != ordered.begin()) found.below = *at - *std::prev(at);
    if (std::next(at) != ordered.end()) found.above = *std::next(at) - *at;
    found.nearest = found.below == 0.0F   ? found.above
                    : found.above == 0.0F ? found.below
                                          : std::min(found.below, found.above);
  }
  return result;
}

/// Some rows of a matrix, taken apart.
struct Tile {
  std::vector<std::uint8_t> codes;  ///< rows × columns
  std::vector<double> scales;       ///< rows × groups
  std::vector<double> offsets;      ///< likewise, or empty for none
};

/// A matrix whose value is scale · level(code) + offset, with a scale and an offset for each group of
/// columns of a row.
class PackedMatrix : public QuantizedSource {
 public:
  PackedMatrix(std::string name, std::vector<std::uint64_t> shape, Coding coding)
      : name_(std::move(name)),
        shape_(std::move(shape)),
        coding_(std::move(coding)),
        format_{coding_.name, coding_.group, coding_.group_bytes},
        neighbours_(neighbours_of(coding_.levels)) {
    columns_ = shape_.back();
    for (const std::uint64_t extent : std::span(shape_).first(shape_.size() - 1)) rows_ *= extent;
    groups_ = columns_ == 0 ? 0 : (columns_ - 1) / coding_.group + 1;
  }

  [[nodiscard]] Tensor tensor() const {
    return {name_, Dtype::F32, shape_, StoredBytes(*this), &format_, this};
  }

  [[nodiscard]] std::uint64_t size() const override { return rows_ * columns_ * sizeof(float); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    NORMSCOPE_ASSERT(offset <= size() && out.size() <= size() - offset);
    const std::uint64_t row_bytes = columns_ * sizeof(float);
    Tile tile;
    std::vector<float> values;
    while (!out.empty()) {
      const std::uint64_t first = offset / row_bytes;
      const std::uint64_t end = (offset + out.size() - 1) / row_bytes + 1;
      const std::uint64_t rows = std::min(rows_of_tile(), end - first);
      load(first, rows, tile);
      values.resize(static_cast<std::size_t>(rows * columns_));
      decode_tile(tile, rows, values);
      const auto from = static_cast<std::size_t>(offset - first * row_bytes);
      const std::size_t count = std::min(out.size(), values.size() * sizeof(float) - from);
      std::memcpy(out.data(), reinterpret_cast<const std::byte*>(values.data()) + from, count);
      offset += count;
      out = out.subspan(count);
    }
  }

  void describe(std::uint64_t first, std::span<QuantizedElement> out) const override {
    Tile tile;
    while (!out.empty()) {
      const std::uint64_t row = first / columns_;
      const std::uint64_t from = first % columns_;
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), columns_ - from));
      load(row, 1, tile);
      for (std::size_t i = 0; i < count; ++i) out[i] = element(tile, from + i);
      first += count;
      out = out.subspan(count);
    }
  }

  [[nodiscard]] bool is_nearest() const override { return true; }

 protected:
  /// Fills `tile` with rows [first, first + count).
  virtual void load(std::uint64_t first, std::uint64_t count, Tile& tile) const = 0;

  [[nodiscard]] std::uint64_t columns() const { return columns_; }
  [[nodiscard]] std::uint64_t groups() const { return groups_; }
  [[nodiscard]] const Coding& coding() const { return coding_; }

 private:
  [[nodiscard]] std::uint64_t rows_of_tile() const {
    return std::max<std::uint64_t>(1, elements_of_tile / columns_);
  }

  void decode_tile(const Tile& tile, std::uint64_t rows, std::span<float> values) const {
    const std::uint8_t* code = tile.codes.data();
    float* value = values.data();
    for (std::uint64_t row = 0; row < rows; ++row) {
      for (std::uint64_t group = 0; group < groups_; ++group) {
        const auto at = static_cast<std::size_t>(row * groups_ + group);
        const double scale = tile.scales[at];
        const double offset = tile.offsets.empty() ? 0.0 : tile.offsets[at];
        const std::uint64_t count = std::min(coding_.group, columns_ - group * coding_.group);
        for (std::uint64_t i = 0; i < count; ++i) {
          *value++ = static_cast<float>(scale * coding_.levels[*code++] + offset);
        }
      }
    }
  }

  [[nodiscard]] QuantizedElement element(const Tile& tile, std::uint64_t column) const {
    const auto group = static_cast<std::size_t>(column / coding_.group);
    const std::uint8_t code = tile.codes[static_cast<std::size_t>(column)];
    const double scale = tile.scales[group];
    const double offset = tile.offsets.empty() ? 0.0 : tile.offsets[group];
    const double level = coding_.levels[code];
    const double size = std::abs(scale);
    const Neighbours& near = neighbours_[code];
    QuantizedElement result{.value = static_cast<float>(scale * level + offset)};
    result.below = size * (scale < 0.0 ? near.above : near.below);
    result.above = size * (scale < 0.0 ? near.below : near.above);
    result.step = size * near.nearest;
    result.rounding = 0x1p-24 * std::abs(result.value);
    if (coding_.rounds_scale) {
      result.rounding += std::abs(level) * half_spacing(coding_.scales, scale);
      if (!tile.offsets.empty()) result.rounding += half_spacing(coding_.scales, offset);
    }
    result.beyond = coding_.clipped_steps * result.step +
                    coding_.clipped_units * std::max(coding_.least_scale_spacing, 0x1p-4 * size);
    return result;
  }

  std::string name_;
  std::vector<std::uint64_t> shape_;
  Coding coding_;
  BlockFormat format_;
  std::vector<Neighbours> neighbours_;
  std::uint64_t rows_ = 1;
  std::uint64_t columns_ = 0;
  std::uint64_t groups_ = 0;
};

/// Codes of `bits` bits from a stream of bytes, lowest bits first.
void unpack(std::span<const std::byte> bytes, unsigned bits, std::span<std::uint8_t> codes) {
  const unsigned mask = (1U << bits) - 1U;
  const auto byte_at = [bytes](std::size_t at) { return std::to_integer<unsigned>(bytes[at]); };
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::size_t bit = i * bits;
    const std::size_t at = bit / 8;
    const unsigned shift = bit % 8;
    unsigned window = byte_at(at);
    if (shift + bits > 8) window |= byte_at(at + 1) << 8U;
    codes[i] = static_cast<std::uint8_t>(window >> shift & mask);
  }
}

/// Numbers of a type of scales; of U8, powers of two with an exponent of 8 bits.
void decode_scales(const Tensor& tensor, Dtype as, std::uint64_t first, std::span<double> out) {
  const std::uint64_t width = bits(tensor.dtype) / 8;
  std::vector<std::byte> buffer;
  const std::span<const std::byte> bytes = tensor.bytes.part(first * width, out.size() * width).fetch(buffer);
  if (as != Dtype::F8_E8M0) return decode(as, bytes, out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int exponent = std::to_integer<int>(bytes[i]);
    out[i] = exponent == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, exponent - 127);
  }
}

/// A matrix of MLX.
class MlxMatrix : public PackedMatrix {
 public:
  MlxMatrix(std::vector<std::uint64_t> shape, Coding coding, unsigned bits, const Tensor& weight,
            const Tensor& scales, const Tensor* biases)
      : PackedMatrix(std::string(weight.name), std::move(shape), std::move(coding)),
        bits_(bits),
        weight_(weight),
        scales_(scales),
        biases_(biases == nullptr ? std::nullopt : std::optional(*biases)) {}

 private:
  void load(std::uint64_t first, std::uint64_t count, Tile& tile) const override {
    const std::uint64_t row_bytes = columns() * bits_ / 8;
    std::vector<std::byte> buffer;
    tile.codes.resize(static_cast<std::size_t>(count * columns()));
    unpack(weight_.bytes.part(first * row_bytes, count * row_bytes).fetch(buffer), bits_, tile.codes);
    tile.scales.resize(static_cast<std::size_t>(count * groups()));
    decode_scales(scales_, coding().scales, first * groups(), tile.scales);
    tile.offsets.resize(biases_ ? tile.scales.size() : 0);
    if (biases_) decode_scales(*biases_, coding().scales, first * groups(), tile.offsets);
  }

  unsigned bits_;
  Tensor weight_, scales_;
  std::optional<Tensor> biases_;
};

/// Finds the matrices of one scheme among the tensors of a checkpoint.
class Packer {
 public:
  Packer(const std::string& where, PlacedTensors placed, std::vector<std::unique_ptr<QuantizedSource>>& views)
      : where_(where), placed_(placed), views_(views) {}

  void add_mlx(const Json& stated) {
    for (const Tensor& scales : placed_.tensors) {
      if (!scales.name.ends_with(".scales")) continue;
      const std::string stem(scales.name.substr(0, scales.name.size() - std::strlen(".scales")));
      const Tensor* const weight = find(stem + ".weight");
      // A factor for a whole tensor is not read.
      if (weight == nullptr || weight->dtype != Dtype::U32 || find(stem + ".global_scale") != nullptr) {
        continue;
      }
      add_mlx_matrix(stem, stated, *weight, scales);
    }
    replace();
  }

 private:
  [[noreturn]] void reject(ErrorCode code, const std::string& what) const { fail(code, where_, what); }

  [[nodiscard]] const Tensor* find(std::string_view name) const {
    const std::vector<Tensor>& all = placed_.tensors;
    const auto at =
        std::lower_bound(all.begin(), all.end(), name,
                         [](const Tensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
    return at != all.end() && at->name == name ? &*at : nullptr;
  }

  [[nodiscard]] std::uint64_t whole_number(const Json& object, const std::string& path,
                                           const char* key) const {
    const auto found = object.find(key);
    if (found != object.end() && found->is_number_unsigned()) return found->get<std::uint64_t>();
    reject(ErrorCode::Format, fmt::format("\"{}.{}\" is {}, expected a whole number", path, key,
                                          found == object.end() ? "missing" : quote(found->dump())));
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
    const std::string mode = stated->value("mode", Json("affine")).is_string()
                                 ? stated->value("mode", std::string("affine"))
                                 : std::string("?");
    Coding coding = mlx_coding(path, mode, group, bits, scales);
    const bool is_affine = mode == "affine";
    const Tensor* const biases = find(stem + ".biases");
    if (is_affine != (biases != nullptr)) {
      reject(ErrorCode::Format,
             fmt::format("{} {} {}.biases, which mode \"{}\" {}", quote(weight.name),
                         is_affine ? "has no" : "has", stem, mode, is_affine ? "needs" : "does not have"));
    }
    const std::uint64_t last = weight.shape.empty() ? 0 : weight.shape.back();
    std::vector<std::uint64_t> shape(weight.shape.begin(), weight.shape.end());
    std::vector<std::uint64_t> of_scales = shape;
    const bool fits = weight.shape.size() >= 2 && weight.elements() != 0 &&
                      last <= std::numeric_limits<std::uint64_t>::max() / 32 && last * 32 % bits == 0 &&
                      last * 32 / bits % group == 0;
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
    if (biases != nullptr &&
        (biases->dtype != scales.dtype || !std::ranges::equal(biases->shape, scales.shape))) {
      reject(ErrorCode::Shape,
             fmt::format("{} is {} [{}], expected {} [{}], as {}", quote(biases->name),
                         to_string(biases->dtype), fmt::join(biases->shape, ", "), to_string(scales.dtype),
                         fmt::join(scales.shape, ", "), quote(scales.name)));
    }
    used_.insert(scales.name);
    if (biases != nullptr) used_.insert(biases->name);
    take(weight.name, std::make_unique<MlxMatrix>(std::move(shape), std::move(coding),
                                                  static_cast<unsigned>(bits), weight, scales, biases));
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
      if (!holds) {
        reject(ErrorCode::Format, fmt::format("{} is {}, expected {} in mode \"{}\"", quote(scales.name),
                                              to_string(scales.dtype), expected, mode));
      }
    };
    const std::uint64_t code_bytes = group * bits / 8;
    if (mode == "affine") {
      expect(bits >= 2 && bits <= 8 && bits != 7, "2, 3, 4, 5, 6 or 8 bits");
      expect(group == 32 || group == 64 || group == 128, "groups of 32, 64 or 128");
      expect_scales(scales.dtype == Dtype::F32 || scales.dtype == Dtype::F16 || scales.dtype == Dtype::BF16,
                    "F32, F16 or BF16");
      // The scale is chosen so that the end of the larger magnitude and zero are codes, which moves the other
      // end by a step at most.
      return {.name = fmt::format("MLX-{}bit-g{}", bits, group),
              .levels = integers(static_cast<unsigned>(bits)),
              .group = group,
              .group_bytes = code_bytes + 2 * normscope::bits(scales.dtype) / 8,
              .scales = scales.dtype,
              .clipped_steps = 1.0};
    }
    Coding coding{
        .name = "MLX-" + mode, .group = group, .group_bytes = code_bytes + 1, .rounds_scale = false};
    if (mode == "mxfp4" || mode == "nvfp4") {
      expect(bits == 4 && group == (mode == "mxfp4" ? 32U : 16U), "4 bits, groups of 32 (nvfp4: of 16)");
      coding.levels.assign(e2m1.begin(), e2m1.end());
    } else {
      expect(mode == "mxfp8" && bits == 8 && group == 32,
             "mode affine, mxfp4, nvfp4, or mxfp8 with 8 bits and groups of 32");
      coding.levels = values_of(Dtype::F8_E4M3);
    }
    expect_scales(scales.dtype == Dtype::U8, "U8");
    coding.scales = mode == "nvfp4" ? Dtype::F8_E4M3 : Dtype::F8_E8M0;
    if (mode == "nvfp4") {
      // The largest level times what rounding takes from a scale of three bits of mantissa.
      coding.clipped_units = 6.0;
      coding.least_scale_spacing = 0x1p-10;
    }
    return coding;
  }

  /// Puts the matrix in the place of the tensor of that name.
  void take(std::string_view place, std::unique_ptr<PackedMatrix> matrix) {
    decoded_.emplace(place, matrix->tensor());
    views_.push_back(std::move(matrix));
  }

  /// Puts the decoded matrices into their places, and leaves out the other parts.
  void replace() {
    std::size_t kept = 0;
    std::vector<Tensor>& tensors = placed_.tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (used_.contains(tensors[i].name)) continue;
      const auto found = decoded_.find(tensors[i].name);
      tensors[kept] = found == decoded_.end() ? tensors[i] : found->second;
      placed_.file_of[kept++] = placed_.file_of[i];
    }
    tensors.resize(kept);
    placed_.file_of.resize(kept);
  }

  const std::string& where_;
  PlacedTensors placed_;
  std::vector<std::unique_ptr<QuantizedSource>>& views_;
  std::set<std::string_view> used_{};
  std::map<std::string_view, Tensor> decoded_{};  ///< by their place
};

/// The object of that name, unless it is not stated.
const Json* object_in(const Json& root, const char* key) {
  const auto found = root.find(key);
  return found != root.end() && found->is_object() ? &*found : nullptr;
}

}  // namespace

std::string_view decode_packed(std::string_view config, const std::string& where, PlacedTensors placed,
                               std::vector<std::unique_ptr<QuantizedSource>>& views) {
  const std::optional<Json> root = read_json(config);
  if (!root || !root->is_object()) return {};
  Packer packer(where, placed, views);
  const Json* const mlx = object_in(*root, "quantization");
  if (mlx != nullptr && mlx->contains("bits") && !mlx->contains("quant_method")) {
    packer.add_mlx(*mlx);
    return "mlx";
  }
  return {};
}

}  // namespace normscope::files
