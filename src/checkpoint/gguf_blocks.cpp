#include "gguf_blocks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <normscope/core/assert.hpp>

#include "gguf_decode.hpp"

namespace normscope::checkpoint {
namespace {

constexpr std::uint32_t super_block = 256;
/// Blocks that are decoded at a time.
constexpr std::uint64_t blocks_at_a_time = 64;

constexpr GgufType plain(std::uint32_t number, Dtype dtype) { return {number, dtype, {}}; }
constexpr GgufType packed(std::uint32_t number, std::string_view name, std::uint32_t elements,
                          std::uint32_t bytes, BlockFormat::Decode decode = nullptr) {
  return {number, std::nullopt, {name, elements, bytes, decode}};
}

// In the order of their numbers. Types without a decoder are those that few files have.
constexpr std::array<GgufType, 34> gguf_types = {{
    plain(0, Dtype::F32),
    plain(1, Dtype::F16),
    packed(2, "Q4_0", 32, 18, decode_q4_0),
    packed(3, "Q4_1", 32, 20, decode_q4_1),
    packed(6, "Q5_0", 32, 22, decode_q5_0),
    packed(7, "Q5_1", 32, 24, decode_q5_1),
    packed(8, "Q8_0", 32, 34, decode_q8_0),
    packed(9, "Q8_1", 32, 40),
    packed(10, "Q2_K", super_block, 84, decode_q2_k),
    packed(11, "Q3_K", super_block, 110, decode_q3_k),
    packed(12, "Q4_K", super_block, 144, decode_q4_k),
    packed(13, "Q5_K", super_block, 176, decode_q5_k),
    packed(14, "Q6_K", super_block, 210, decode_q6_k),
    packed(15, "Q8_K", super_block, 292),
    packed(16, "IQ2_XXS", super_block, 66),
    packed(17, "IQ2_XS", super_block, 74),
    packed(18, "IQ3_XXS", super_block, 98),
    packed(19, "IQ1_S", super_block, 50),
    packed(20, "IQ4_NL", 32, 18, decode_iq4_nl),
    packed(21, "IQ3_S", super_block, 110),
    packed(22, "IQ2_S", super_block, 82),
    packed(23, "IQ4_XS", super_block, 136, decode_iq4_xs),
    plain(24, Dtype::I8),
    plain(25, Dtype::I16),
    plain(26, Dtype::I32),
    plain(27, Dtype::I64),
    plain(28, Dtype::F64),
    packed(29, "IQ1_M", super_block, 56),
    plain(30, Dtype::BF16),
    packed(34, "TQ1_0", super_block, 54),
    packed(35, "TQ2_0", super_block, 66),
    packed(39, "MXFP4", 32, 17),
    packed(40, "NVFP4", 64, 36),
    packed(41, "Q1_0", 128, 18),
}};

}  // namespace

const GgufType* gguf_type(std::uint32_t number) {
  const auto* const found = std::find_if(gguf_types.begin(), gguf_types.end(),
                                         [number](const GgufType& type) { return type.number == number; });
  return found == gguf_types.end() ? nullptr : found;
}

std::uint64_t DecodedBlocks::size() const {
  return stored_.size() / format_.bytes * format_.elements * sizeof(float);
}

void DecodedBlocks::read(std::uint64_t offset, std::span<std::byte> out) const {
  NORMSCOPE_ASSERT(offset <= size() && out.size() <= size() - offset);
  NORMSCOPE_ASSERT(format_.decode != nullptr);
  const std::uint64_t block_size = format_.elements * sizeof(float);
  std::vector<std::byte> buffer;
  std::vector<float> values;
  while (!out.empty()) {
    const std::uint64_t first = offset / block_size;
    const std::uint64_t end = (offset + out.size() + block_size - 1) / block_size;
    const auto count = static_cast<std::size_t>(std::min(blocks_at_a_time, end - first));
    const std::span<const std::byte> blocks =
        stored_.part(first * format_.bytes, count * std::uint64_t{format_.bytes}).fetch(buffer);
    values.resize(count * format_.elements);
    for (std::size_t i = 0; i < count; ++i) {
      format_.decode(&blocks[i * format_.bytes], &values[i * format_.elements]);
    }
    const auto from = static_cast<std::size_t>(offset - first * block_size);
    const std::size_t size = std::min(out.size(), values.size() * sizeof(float) - from);
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(values.data()) + from, size);
    offset += size;
    out = out.subspan(size);
  }
}

}  // namespace normscope::checkpoint
