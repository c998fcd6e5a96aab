#include "packed_matrix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include <normscope/core/error.hpp>

namespace normscope::files {
namespace {

constexpr std::uint64_t elements_of_tile = std::uint64_t{1} << 17U;

/// Half the distance between neighbours in a floating-point type, at most.
double half_spacing(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::F16: return std::max(0x1p-11 * std::abs(value), 0x1p-25);
    case Dtype::BF16: return 0x1p-8 * std::abs(value);
    default: return 0x1p-24 * std::abs(value);
  }
}

std::vector<Neighbours> neighbours_of(std::span<const float> levels) {
  std::set<float> ordered;
  for (const float level : levels) {
    if (std::isfinite(level)) ordered.insert(level);
  }
  std::vector<Neighbours> result(levels.size());
  for (std::size_t code = 0; code < levels.size(); ++code) {
    const auto at = std::isfinite(levels[code]) ? ordered.find(levels[code]) : ordered.end();
    if (at == ordered.end()) continue;
    Neighbours& found = result[code];
    if (at != ordered.begin()) found.below = *at - *std::prev(at);
    if (std::next(at) != ordered.end()) found.above = *std::next(at) - *at;
    found.nearest = found.below == 0.0F   ? found.above
                    : found.above == 0.0F ? found.below
                                          : std::min(found.below, found.above);
  }
  return result;
}

}  // namespace

Levels::Levels(std::vector<float> of_codes)
    : values(std::move(of_codes)), neighbours(neighbours_of(values)) {}

const Levels& integers(unsigned bits, bool centred) {
  static const std::vector<Levels> tables = [] {
    std::vector<Levels> result;
    for (unsigned k = 0; k < 16; ++k) {
      std::vector<float> values(std::size_t{2} << k / 2);
      const float less = k % 2 == 0 ? 0.0F : static_cast<float>(values.size() / 2);
      for (std::size_t code = 0; code < values.size(); ++code) values[code] = static_cast<float>(code) - less;
      result.emplace_back(std::move(values));
    }
    return result;
  }();
  return tables[2 * (bits - 1) + (centred ? 1 : 0)];
}

const Levels& floats_of_four_bits() {
  static const Levels levels({0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F, -0.0F, -0.5F, -1.0F, -1.5F,
                              -2.0F, -3.0F, -4.0F, -6.0F});
  return levels;
}

const Levels& values_of(Dtype dtype) {
  const auto table = [](Dtype type) {
    std::array<std::byte, 256> codes;
    for (std::size_t code = 0; code < codes.size(); ++code) codes[code] = static_cast<std::byte>(code);
    std::array<double, 256> values;
    decode(type, codes, values);
    return Levels({values.begin(), values.end()});
  };
  static const Levels e4m3 = table(Dtype::F8_E4M3);
  static const Levels e5m2 = table(Dtype::F8_E5M2);
  static const Levels int8 = table(Dtype::I8);
  return dtype == Dtype::I8 ? int8 : dtype == Dtype::F8_E5M2 ? e5m2 : e4m3;
}

PackedMatrix::PackedMatrix(std::string name, std::vector<std::uint64_t> shape, Coding coding,
                           std::vector<std::uint32_t> group_of)
    : name_(std::move(name)),
      shape_(std::move(shape)),
      coding_(std::move(coding)),
      group_of_(std::move(group_of)),
      format_{coding_.name, coding_.group, coding_.group_bytes} {
  columns_ = shape_.back();
  for (const std::uint64_t extent : std::span(shape_).first(shape_.size() - 1)) rows_ *= extent;
  groups_ = (columns_ - 1) / coding_.group + 1;
}

Tensor PackedMatrix::tensor() const {
  return {name_, Dtype::F32, shape_, StoredBytes(*this), &format_, this};
}

std::size_t PackedMatrix::group_at(std::uint64_t column) const {
  return static_cast<std::size_t>(group_of_.empty() ? column / coding_.group
                                                    : group_of_[static_cast<std::size_t>(column)]);
}

void PackedMatrix::take_apart(std::uint64_t first, std::uint64_t count, Tile& tile) const {
  tile.codes.resize(static_cast<std::size_t>(count * columns_));
  tile.scales.resize(static_cast<std::size_t>(count * groups_));
  load(first, count, tile);
}

void PackedMatrix::read(std::uint64_t offset, std::span<std::byte> out) const {
  NORMSCOPE_ASSERT(offset <= size() && out.size() <= size() - offset);
  const std::uint64_t row_bytes = columns_ * sizeof(float);
  const std::uint64_t rows_of_tile = std::max<std::uint64_t>(1, elements_of_tile / columns_);
  Tile tile;
  std::vector<float> values;
  while (!out.empty()) {
    const std::uint64_t first = offset / row_bytes;
    const std::uint64_t end = (offset + out.size() - 1) / row_bytes + 1;
    const std::uint64_t count = std::min(rows_of_tile, end - first);
    take_apart(first, count, tile);
    values.resize(static_cast<std::size_t>(count * columns_));
    decode_tile(tile, count, values);
    const auto from = static_cast<std::size_t>(offset - first * row_bytes);
    const std::size_t size = std::min(out.size(), values.size() * sizeof(float) - from);
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(values.data()) + from, size);
    offset += size;
    out = out.subspan(size);
  }
}

void PackedMatrix::describe(std::uint64_t first, std::span<QuantizedElement> out) const {
  Tile tile;
  while (!out.empty()) {
    const std::uint64_t from = first % columns_;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), columns_ - from));
    take_apart(first / columns_, 1, tile);
    for (std::size_t i = 0; i < count; ++i) out[i] = element(tile, from + i);
    first += count;
    out = out.subspan(count);
  }
}

void PackedMatrix::decode_tile(const Tile& tile, std::uint64_t rows, std::span<float> values) const {
  const std::vector<float>& levels = coding_.levels.values;
  const std::uint8_t* code = tile.codes.data();
  float* value = values.data();
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::size_t first = static_cast<std::size_t>(row * groups_);
    for (std::uint64_t column = 0; column < columns_;) {
      const std::size_t at = first + group_at(column);
      const double scale = tile.scales[at];
      const double offset = tile.offsets.empty() ? 0.0 : tile.offsets[at];
      const std::uint64_t count = group_of_.empty() ? std::min(coding_.group, columns_ - column) : 1;
      for (std::uint64_t i = 0; i < count; ++i) {
        *value++ = static_cast<float>(scale * levels[*code++] + offset);
      }
      column += count;
    }
  }
}

QuantizedElement PackedMatrix::element(const Tile& tile, std::uint64_t column) const {
  const std::size_t group = group_at(column);
  const std::uint8_t code = tile.codes[static_cast<std::size_t>(column)];
  const double scale = tile.scales[group];
  const double offset = tile.offsets.empty() ? 0.0 : tile.offsets[group];
  const double level = coding_.levels.values[code];
  const double size = std::abs(scale);
  const Neighbours& near = coding_.levels.neighbours[code];
  QuantizedElement result{.value = static_cast<float>(scale * level + offset)};
  result.below = size * (scale < 0.0 ? near.above : near.below);
  result.above = size * (scale < 0.0 ? near.below : near.above);
  result.step = size * near.nearest;
  result.rounding = 0x1p-24 * std::abs(result.value);
  if (coding_.rounds_scale) {
    result.rounding += std::abs(level) * half_spacing(coding_.scales, scale);
    if (!tile.offsets.empty()) result.rounding += half_spacing(coding_.scales, offset);
    if (coding_.adds_zero) result.rounding += size * half_spacing(coding_.scales, code);
  }
  result.beyond = coding_.clipped_steps * result.step +
                  coding_.clipped_units * std::max(coding_.least_scale_spacing, 0x1p-4 * size);
  return result;
}

}  // namespace normscope::files
