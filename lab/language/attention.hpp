#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// Causal attention of narrow heads, which libtorch computes one small operation after the other.
namespace normscope::lab::language {

/// Widths of a head that are compiled.
inline constexpr std::size_t head_widths[] = {1, 2, 4, 8};

struct Attention {
  std::size_t heads = 0;    ///< of all sequences together
  std::size_t width = 0;    ///< of a head, one of `head_widths`
  std::size_t length = 0;   ///< of a sequence
  double dropout = 0.0;     ///< probability that a weight is set to 0, in [0, 1)
  std::uint64_t noise = 0;  ///< determines which
};

/// For every head and position i
///   p_ij = softmax over j <= i of q_i · k_j / sqrt(width)
///   o_i  = sum over j <= i of m_ij p_ij v_j,  m_ij 0 with probability `dropout`, else 1 / (1 - dropout)
///
/// Shapes    parts (3, heads, width, length): queries, keys, values; out (heads, width, length);
///           softmax (heads, 2, length): largest score and inverse sum, which `attend_back` needs
///
/// Accuracy  that of float32: 1e-5 of the largest output (test: NarrowAttention.IsThatOfEveryWeight). The
/// result is the same
///           on every instruction set
///
/// Cost      10 to 20 multiply-adds and an exponential for each pair of positions
void attend(const Attention& shape, std::span<const float> parts, std::span<float> out,
            std::span<float> softmax);

/// The gradient with respect to `parts`, from that with respect to `out`.
///
/// Shapes    those of `attend`; by_out that of out, by_parts that of parts, overwritten
void attend_back(const Attention& shape, std::span<const float> parts, std::span<const float> out,
                 std::span<const float> softmax, std::span<const float> by_out, std::span<float> by_parts);

/// m_ij
[[nodiscard]] float kept(const Attention& shape, std::size_t head, std::size_t i, std::size_t j);

}  // namespace normscope::lab::language
