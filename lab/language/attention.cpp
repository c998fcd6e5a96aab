#include "attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <vector>

#include <normscope/core/error.hpp>
#include <normscope/core/lanes.hpp>

namespace normscope::lab::language {
namespace {

using Floats = Lanes<float>;
using Integers = Ints<float>;
typedef std::uint32_t Bits __attribute__((vector_size(64)));
constexpr std::size_t lanes = lane_count<float>;

/// g++ allocates a vector of `Floats` without their alignment.
struct alignas(64) Stored {
  Floats value{};
};

/// Dropout.
struct Mask {
  float weight = 1.0F;          // of what is kept
  std::uint32_t threshold = 0;  // random bits below it: dropped
};

Mask mask_of(const Attention& shape) {
  return {.weight = static_cast<float>(1.0 / (1.0 - shape.dropout)),
          .threshold = static_cast<std::uint32_t>(shape.dropout * 4294967296.0)};
}

/// The noise of one position; its columns are told apart by multiples of an odd number.
std::uint32_t row_noise(std::uint64_t noise, std::size_t head, std::size_t i) {
  std::uint64_t x = noise + 0x9e3779b97f4a7c15U * ((static_cast<std::uint64_t>(head) << 32U) + i + 1);
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<std::uint32_t>(x >> 32U);
}

constexpr std::uint32_t column_step = 0x9e3779b9U;

/// The mixing of 32 bits of MurmurHash3.
template <class Word>
NORMSCOPE_LANES_INLINE void mix(Word& x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bU;
  x = (x ^ (x >> 13)) * 0xc2b2ae35U;
  x = x ^ (x >> 16);
}

/// Queries, keys and values of one head, a coordinate after the other. Keys and values are padded with zeros
/// to whole vectors of lanes.
struct Head {
  explicit Head(const Attention& shape)
      : shape(shape),
        stride((shape.length + lanes - 1) / lanes),
        query(shape.width * shape.length),
        key(shape.width * stride),
        value(shape.width * stride) {}

  /// Where coordinate f of a part (queries 0, keys 1, values 2) is among the parts of all heads.
  [[nodiscard]] std::size_t offset(std::size_t head, std::size_t part, std::size_t f) const {
    return ((part * shape.heads + head) * shape.width + f) * shape.length;
  }
  void read(std::span<const float> parts, std::size_t head) {
    for (std::size_t f = 0; f < shape.width; ++f) {
      std::copy_n(parts.data() + offset(head, 0, f), shape.length, query.data() + f * shape.length);
      std::memcpy(static_cast<void*>(key.data() + f * stride), parts.data() + offset(head, 1, f),
                  shape.length * sizeof(float));
      std::memcpy(static_cast<void*>(value.data() + f * stride), parts.data() + offset(head, 2, f),
                  shape.length * sizeof(float));
    }
  }
  void write(std::span<float> parts, std::size_t head) const {
    for (std::size_t f = 0; f < shape.width; ++f) {
      std::copy_n(query.data() + f * shape.length, shape.length, parts.data() + offset(head, 0, f));
      std::memcpy(parts.data() + offset(head, 1, f), key.data() + f * stride, shape.length * sizeof(float));
      std::memcpy(parts.data() + offset(head, 2, f), value.data() + f * stride, shape.length * sizeof(float));
    }
  }

  const Attention& shape;
  std::size_t stride;  // vectors of lanes per coordinate
  std::vector<float> query;
  std::vector<Stored> key;
  std::vector<Stored> value;
};

/// Columns of a block: first, first + 1, …
NORMSCOPE_LANES_INLINE void columns(Integers& result, std::size_t block) {
  result = Integers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + static_cast<int>(block * lanes);
}

NORMSCOPE_LANES_INLINE void drop(Floats& weights, const Integers& column, std::uint32_t noise,
                                 const Mask& mask) {
  Bits bits = __builtin_convertvector(column, Bits) * column_step + noise;
  mix(bits);
  weights = bits >= mask.threshold ? weights * mask.weight : weights * 0.0F;
}

/// e^(score - largest) of the columns up to `last`, 0 of the others.
NORMSCOPE_LANES_INLINE void weigh(Floats& score, const Integers& column, int last, float largest) {
  score = column <= last ? score - largest : Floats{} + Simd<float>::least;
  exponentiate<float>(score);
  score = column <= last ? score : Floats{};
}

/// What is kept of one position from its forward pass.
struct Softmax {
  float* largest;
  float* inverse;
};

template <std::size_t width>
NORMSCOPE_LANES_INLINE void attend_rows(const Head& head, const std::uint32_t* noise, const Mask& mask,
                                        const Softmax& softmax, Stored* scores, float* out) {
  const std::size_t length = head.shape.length;
  const std::size_t stride = head.stride;
  for (std::size_t i = 0; i < length; ++i) {
    float q[width];
    for (std::size_t f = 0; f < width; ++f) q[f] = head.query[f * length + i];
    const std::size_t blocks = i / lanes + 1;
    const int last = static_cast<int>(i);
    Integers column;
    Floats most = Floats{} - 3e38F;
    for (std::size_t block = 0; block < blocks; ++block) {
      columns(column, block);
      Floats score = head.key[block].value * q[0];
      for (std::size_t f = 1; f < width; ++f) score += head.key[f * stride + block].value * q[f];
      scores[block].value = score;
      score = column <= last ? score : most;
      most = score > most ? score : most;
    }
    float largest = most[0];
    for (std::size_t lane = 1; lane < lanes; ++lane) largest = std::max(largest, most[lane]);
    Floats sum{};
    Floats mixed[width]{};
    for (std::size_t block = 0; block < blocks; ++block) {
      columns(column, block);
      Floats weight = scores[block].value;
      weigh(weight, column, last, largest);
      sum += weight;
      if (mask.threshold > 0) drop(weight, column, noise[i], mask);
      for (std::size_t f = 0; f < width; ++f) mixed[f] += weight * head.value[f * stride + block].value;
    }
    const double inverse = 1.0 / total<float>(sum);
    softmax.largest[i] = largest;
    softmax.inverse[i] = static_cast<float>(inverse);
    for (std::size_t f = 0; f < width; ++f)
      out[f * length + i] = static_cast<float>(total<float>(mixed[f]) * inverse);
  }
}

/// `back` receives the gradient by the head's vectors, with that by keys and values 0 at first.
template <std::size_t width>
NORMSCOPE_LANES_INLINE void attend_rows_back(const Head& head, const std::uint32_t* noise, const Mask& mask,
                                             const float* largest, const float* inverse, const float* out,
                                             const float* by_out, Head& back) {
  const std::size_t length = head.shape.length;
  const std::size_t stride = head.stride;
  for (std::size_t i = 0; i < length; ++i) {
    float q[width];
    float by_o[width];
    float along = 0.0F;
    for (std::size_t f = 0; f < width; ++f) {
      q[f] = head.query[f * length + i];
      by_o[f] = by_out[f * length + i];
      along += by_o[f] * out[f * length + i];
    }
    const std::size_t blocks = i / lanes + 1;
    const int last = static_cast<int>(i);
    Integers column;
    Floats by_query[width]{};
    for (std::size_t block = 0; block < blocks; ++block) {
      columns(column, block);
      Floats weight = head.key[block].value * q[0];
      Floats by_weight = head.value[block].value * by_o[0];
      for (std::size_t f = 1; f < width; ++f) {
        weight += head.key[f * stride + block].value * q[f];
        by_weight += head.value[f * stride + block].value * by_o[f];
      }
      weigh(weight, column, last, largest[i]);
      weight *= inverse[i];
      Floats passed = weight;
      if (mask.threshold > 0) {
        drop(passed, column, noise[i], mask);
        drop(by_weight, column, noise[i], mask);
      }
      const Floats by_score = weight * (by_weight - along);
      for (std::size_t f = 0; f < width; ++f) {
        by_query[f] += by_score * head.key[f * stride + block].value;
        back.key[f * stride + block].value += by_score * q[f];
        back.value[f * stride + block].value += passed * by_o[f];
      }
    }
    for (std::size_t f = 0; f < width; ++f)
      back.query[f * length + i] = static_cast<float>(total<float>(by_query[f]));
  }
}

NORMSCOPE_LANES_CLONES void attend_head(const Head& head, const std::uint32_t* noise, const Mask& mask,
                                        const Softmax& softmax, Stored* scores, float* out) {
  switch (head.shape.width) {
    case 1: return attend_rows<1>(head, noise, mask, softmax, scores, out);
    case 2: return attend_rows<2>(head, noise, mask, softmax, scores, out);
    case 4: return attend_rows<4>(head, noise, mask, softmax, scores, out);
    default: return attend_rows<8>(head, noise, mask, softmax, scores, out);
  }
}

NORMSCOPE_LANES_CLONES void attend_head_back(const Head& head, const std::uint32_t* noise, const Mask& mask,
                                             const float* largest, const float* inverse, const float* out,
                                             const float* by_out, Head& back) {
  switch (head.shape.width) {
    case 1: return attend_rows_back<1>(head, noise, mask, largest, inverse, out, by_out, back);
    case 2: return attend_rows_back<2>(head, noise, mask, largest, inverse, out, by_out, back);
    case 4: return attend_rows_back<4>(head, noise, mask, largest, inverse, out, by_out, back);
    default: return attend_rows_back<8>(head, noise, mask, largest, inverse, out, by_out, back);
  }
}

void require([[maybe_unused]] const Attention& shape) {
  NORMSCOPE_ASSERT(std::find(std::begin(head_widths), std::end(head_widths), shape.width) !=
                   std::end(head_widths));
  NORMSCOPE_ASSERT(shape.dropout >= 0.0 && shape.dropout < 1.0);
}

/// Scores are divided by this.
float score_divisor(const Attention& shape) { return std::sqrt(static_cast<float>(shape.width)); }

void fill(const Attention& shape, std::span<const float> parts, std::size_t head, Head& own,
          std::vector<std::uint32_t>& noise) {
  own.read(parts, head);
  for (float& entry : own.query) entry /= score_divisor(shape);
  for (std::size_t i = 0; i < shape.length; ++i) noise[i] = row_noise(shape.noise, head, i);
}

}  // namespace

void attend(const Attention& shape, std::span<const float> parts, std::span<float> out,
            std::span<float> softmax) {
  require(shape);
  const std::size_t size = shape.width * shape.length;
  NORMSCOPE_ASSERT(parts.size() == 3 * shape.heads * size && out.size() == shape.heads * size &&
                   softmax.size() == 2 * shape.heads * shape.length);
  Head own(shape);
  std::vector<Stored> scores(own.stride);
  std::vector<std::uint32_t> noise(shape.length);
  for (std::size_t head = 0; head < shape.heads; ++head) {
    fill(shape, parts, head, own, noise);
    float* kept_softmax = softmax.data() + 2 * head * shape.length;
    attend_head(own, noise.data(), mask_of(shape), {kept_softmax, kept_softmax + shape.length}, scores.data(),
                out.data() + head * size);
  }
}

void attend_back(const Attention& shape, std::span<const float> parts, std::span<const float> out,
                 std::span<const float> softmax, std::span<const float> by_out, std::span<float> by_parts) {
  require(shape);
  const std::size_t size = shape.width * shape.length;
  NORMSCOPE_ASSERT(parts.size() == 3 * shape.heads * size && by_parts.size() == parts.size() &&
                   out.size() == shape.heads * size && by_out.size() == out.size() &&
                   softmax.size() == 2 * shape.heads * shape.length);
  Head own(shape);
  Head back(shape);
  std::vector<std::uint32_t> noise(shape.length);
  for (std::size_t head = 0; head < shape.heads; ++head) {
    fill(shape, parts, head, own, noise);
    std::fill(back.key.begin(), back.key.end(), Stored{});
    std::fill(back.value.begin(), back.value.end(), Stored{});
    const float* kept_softmax = softmax.data() + 2 * head * shape.length;
    attend_head_back(own, noise.data(), mask_of(shape), kept_softmax, kept_softmax + shape.length,
                     out.data() + head * size, by_out.data() + head * size, back);
    for (float& entry : back.query) entry /= score_divisor(shape);
    back.write(by_parts, head);
  }
}

float kept(const Attention& shape, std::size_t head, std::size_t i, std::size_t j) {
  const Mask mask = mask_of(shape);
  std::uint32_t bits = static_cast<std::uint32_t>(j) * column_step + row_noise(shape.noise, head, i);
  mix(bits);
  return bits >= mask.threshold ? mask.weight : 0.0F;
}

}  // namespace normscope::lab::language
