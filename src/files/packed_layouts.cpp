#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "packed_matrix.hpp"

namespace normscope::files {
namespace {

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

/// Elements of a tensor of scales, read as that type.
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

/// Some words of a tensor.
std::span<const std::byte> words_of(const Tensor& tensor, std::uint64_t first, std::uint64_t count,
                                    std::vector<std::byte>& buffer) {
  return tensor.bytes.part(first * 4, count * 4).fetch(buffer);
}

/// Code `index` of a word that begins at that byte.
std::uint8_t code_at(const std::byte* word, unsigned bits, unsigned index) {
  const unsigned bit = bits * index;
  return static_cast<std::uint8_t>(std::to_integer<unsigned>(word[bit / 8]) >> bit % 8 & ((1U << bits) - 1U));
}

class BitStreamMatrix : public PackedMatrix {
 public:
  BitStreamMatrix(std::string name, std::vector<std::uint64_t> shape, Coding coding, const BitStream& parts)
      : PackedMatrix(std::move(name), std::move(shape), std::move(coding)),
        bits_(parts.bits),
        codes_(*parts.codes),
        scales_(*parts.scales) {
    if (parts.biases != nullptr) biases_ = *parts.biases;
    if (parts.zero_points != nullptr) zero_points_ = *parts.zero_points;
  }

 private:
  void load(std::uint64_t first, std::uint64_t count, Tile& tile) const override {
    const std::uint64_t row_bytes = codes_.shape.back() * 4;
    std::vector<std::byte> buffer;
    const std::span<const std::byte> bytes =
        codes_.bytes.part(first * row_bytes, count * row_bytes).fetch(buffer);
    for (std::uint64_t row = 0; row < count; ++row) {
      unpack(bytes.subspan(static_cast<std::size_t>(row * row_bytes), static_cast<std::size_t>(row_bytes)),
             bits_,
             std::span(tile.codes)
                 .subspan(static_cast<std::size_t>(row * columns()), static_cast<std::size_t>(columns())));
    }
    decode_scales(scales_, coding().scales, first * groups(), tile.scales);
    tile.offsets.resize(biases_ || zero_points_ ? tile.scales.size() : 0);
    if (biases_) decode_scales(*biases_, coding().scales, first * groups(), tile.offsets);
    if (zero_points_) subtract_zero_points(first, count, tile);
  }

  void subtract_zero_points(std::uint64_t first, std::uint64_t count, Tile& tile) const {
    const std::uint64_t in_word = 32 / bits_;
    const int middle = 1 << (bits_ - 1U);
    std::vector<std::byte> buffer;
    for (std::uint64_t row = 0; row < count; ++row) {
      const std::span<const std::byte> words =
          words_of(*zero_points_, (first + row) / in_word * groups(), groups(), buffer);
      for (std::uint64_t group = 0; group < groups(); ++group) {
        const int zero = code_at(&words[static_cast<std::size_t>(4 * group)], bits_,
                                 static_cast<unsigned>((first + row) % in_word));
        const auto at = static_cast<std::size_t>(row * groups() + group);
        tile.offsets[at] = -tile.scales[at] * (zero - middle);
      }
    }
  }

  unsigned bits_;
  Tensor codes_, scales_;
  std::optional<Tensor> biases_{}, zero_points_{};
};

class ByteMatrix : public PackedMatrix {
 public:
  ByteMatrix(std::string name, Coding coding, const Tensor& codes, const Tensor& scales,
             std::uint64_t block_rows)
      : PackedMatrix(std::move(name), {codes.shape.begin(), codes.shape.end()}, std::move(coding)),
        codes_(codes),
        scales_(scales),
        block_rows_(block_rows) {}

 private:
  void load(std::uint64_t first, std::uint64_t count, Tile& tile) const override {
    std::vector<std::byte> buffer;
    const std::span<const std::byte> bytes =
        codes_.bytes.part(first * columns(), count * columns()).fetch(buffer);
    std::transform(bytes.begin(), bytes.end(), tile.codes.begin(),
                   [](std::byte code) { return std::to_integer<std::uint8_t>(code); });
    const std::uint64_t rows_of_one = shape()[shape().size() - 2];
    const std::uint64_t blocks_of_one = (rows_of_one - 1) / block_rows_ + 1;
    for (std::uint64_t row = 0; row < count; ++row) {
      const std::uint64_t matrix = (first + row) / rows_of_one;
      const std::uint64_t block = matrix * blocks_of_one + (first + row) % rows_of_one / block_rows_;
      decode_scales(
          scales_, coding().scales, block * groups(),
          std::span(tile.scales)
              .subspan(static_cast<std::size_t>(row * groups()), static_cast<std::size_t>(groups())));
    }
  }

  Tensor codes_, scales_;
  std::uint64_t block_rows_;
};

/// The place in an AWQ word of each of eight rows.
constexpr std::array<unsigned, 8> awq_order = {0, 4, 1, 5, 2, 6, 3, 7};

class TransposedMatrix : public PackedMatrix {
 public:
  TransposedMatrix(std::string name, std::vector<std::uint64_t> shape, Coding coding, const Transposed& parts,
                   std::vector<std::uint32_t> group_of)
      : PackedMatrix(std::move(name), std::move(shape), std::move(coding), std::move(group_of)),
        parts_(parts),
        codes_(*parts.codes),
        scales_(*parts.scales),
        zero_points_(*parts.zero_points) {}

 private:
  [[nodiscard]] unsigned place(std::uint64_t index) const {
    const auto place = static_cast<unsigned>(index % (32 / parts_.bits));
    return parts_.packs_rows ? awq_order[place] : place;
  }

  void load(std::uint64_t first, std::uint64_t count, Tile& tile) const override {
    std::vector<std::byte> buffer;
    const std::uint64_t in_word = 32 / parts_.bits;
    // Words of rows [first, first + count), for codes or zero points that are packed along rows.
    const std::uint64_t first_word = first / in_word;
    const std::uint64_t words = (first + count - 1) / in_word - first_word + 1;
    const auto of_row = [&](std::span<const std::byte> found, std::uint64_t row) {
      const auto at = static_cast<std::size_t>(4 * ((first + row) / in_word - first_word));
      return code_at(&found[at], parts_.bits, place(first + row));
    };
    const std::uint64_t lines = codes_.shape[0];
    for (std::uint64_t line = 0; line < lines; ++line) {
      if (parts_.packs_rows) {
        const auto found = words_of(codes_, line * codes_.shape[1] + first_word, words, buffer);
        for (std::uint64_t row = 0; row < count; ++row) {
          tile.codes[static_cast<std::size_t>(row * columns() + line)] = of_row(found, row);
        }
        continue;
      }
      const auto found = words_of(codes_, line * rows() + first, count, buffer);
      for (std::uint64_t row = 0; row < count; ++row) {
        std::uint8_t* const codes = &tile.codes[static_cast<std::size_t>(row * columns() + line * in_word)];
        for (unsigned i = 0; i < in_word; ++i) {
          codes[i] = code_at(&found[static_cast<std::size_t>(4 * row)], parts_.bits, i);
        }
      }
    }
    tile.offsets.resize(tile.scales.size());
    std::vector<double> scales(static_cast<std::size_t>(count));
    for (std::uint64_t group = 0; group < groups(); ++group) {
      decode_scales(scales_, coding().scales, group * rows() + first, scales);
      const auto found = words_of(zero_points_, group * zero_points_.shape[1] + first_word, words, buffer);
      for (std::uint64_t row = 0; row < count; ++row) {
        const auto at = static_cast<std::size_t>(row * groups() + group);
        const double scale = scales[static_cast<std::size_t>(row)];
        tile.scales[at] = scale;
        tile.offsets[at] = -scale * (of_row(found, row) + parts_.zero_less);
      }
    }
  }

  Transposed parts_;
  Tensor codes_, scales_, zero_points_;
};

}  // namespace

std::unique_ptr<PackedMatrix> bit_stream(std::string name, std::vector<std::uint64_t> shape, Coding coding,
                                         const BitStream& parts) {
  return std::make_unique<BitStreamMatrix>(std::move(name), std::move(shape), std::move(coding), parts);
}

std::unique_ptr<PackedMatrix> byte_codes(std::string name, Coding coding, const Tensor& codes,
                                         const Tensor& scales, std::uint64_t block_rows) {
  return std::make_unique<ByteMatrix>(std::move(name), std::move(coding), codes, scales, block_rows);
}

std::unique_ptr<PackedMatrix> transposed(std::string name, std::vector<std::uint64_t> shape, Coding coding,
                                         const Transposed& parts, std::vector<std::uint32_t> group_of) {
  return std::make_unique<TransposedMatrix>(std::move(name), std::move(shape), std::move(coding), parts,
                                            std::move(group_of));
}

}  // namespace normscope::files
