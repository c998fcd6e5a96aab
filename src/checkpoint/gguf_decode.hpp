#pragma once

#include <cstddef>

/// Decoders of ggml's blocks of quantized elements, in float32 arithmetic as ggml defines them. Each reads
/// one block and writes its elements: 32, or 256 for the types with K and IQ4_XS.
namespace normscope::checkpoint {

void decode_q4_0(const std::byte* block, float* values);
void decode_q4_1(const std::byte* block, float* values);
void decode_q5_0(const std::byte* block, float* values);
void decode_q5_1(const std::byte* block, float* values);
void decode_q8_0(const std::byte* block, float* values);
void decode_q2_k(const std::byte* block, float* values);
void decode_q3_k(const std::byte* block, float* values);
void decode_q4_k(const std::byte* block, float* values);
void decode_q5_k(const std::byte* block, float* values);
void decode_q6_k(const std::byte* block, float* values);
void decode_iq4_nl(const std::byte* block, float* values);
void decode_iq4_xs(const std::byte* block, float* values);

}  // namespace normscope::checkpoint
