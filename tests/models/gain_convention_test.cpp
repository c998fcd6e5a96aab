#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/dtype.hpp>
#include <normscope/models/model.hpp>

/// What stored entries tell about additions of 1, against all numbers of 16 bits.
namespace normscope::models {
namespace {

struct Type {
  Dtype dtype;
  double (*round)(double);
};

const Type types[] = {
    {Dtype::BF16, [](double value) { return static_cast<double>(decode_bfloat16(encode_bfloat16(value))); }},
    {Dtype::F16, [](double value) { return static_cast<double>(decode_float16(encode_float16(value))); }}};

std::vector<double> numbers_of(const Type& type) {
  std::vector<double> numbers;
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const double value = type.dtype == Dtype::BF16 ? decode_bfloat16(bits) : decode_float16(bits);
    if (std::isfinite(value)) numbers.push_back(value);
  }
  return numbers;
}

std::optional<int> most(double stored, Dtype dtype) { return gain_shifts(std::span(&stored, 1), dtype).most; }

TEST(GainConvention, NoSumOfTheTypeIsExcluded) {
  for (const Type& type : types) {
    std::size_t never = 0;
    std::size_t once = 0;
    for (const double w : numbers_of(type)) {
      const double sum = type.round(1.0 + w);
      EXPECT_NE(most(sum, type.dtype), 0) << w;
      EXPECT_EQ(most(type.round(1.0 + sum), type.dtype), std::nullopt) << w;
      never += most(w, type.dtype) == 0 ? 1 : 0;
      once += most(sum, type.dtype) == 1 ? 1 : 0;
    }
    // The test tells most of the numbers below 1/2, and sums between 1/2 and 1.
    EXPECT_GT(never, 10000U);
    EXPECT_GT(once, 10U);
  }
}

TEST(GainConvention, NamesTheEntryThatTells) {
  const std::vector<double> gain = {1.5, 0.75 + 0x1p-8, 0.25 + 0x1p-9, 0.0};
  const GainShifts found = gain_shifts(gain, Dtype::BF16);
  EXPECT_EQ(found.most, 0);
  EXPECT_EQ(found.index, 2U);
  EXPECT_EQ(found.value, 0.25 + 0x1p-9);
  EXPECT_EQ(gain_shifts(std::span(gain).first(2), Dtype::BF16).most, 1);
  EXPECT_EQ(gain_shifts(std::span(gain).first(1), Dtype::BF16).most, std::nullopt);
  EXPECT_EQ(gain_shifts(gain, Dtype::F8_E4M3).bits, 0);
}

TEST(GainConvention, CountsOddsOnlyForATypeWhoseBitsAreUsed) {
  // Three of four numbers of BF16 in [1/8, 1/4) are no multiple of 2^-8.
  std::vector<double> gain(10, 0.125 + 0x1p-8);
  EXPECT_EQ(gain_shifts(gain, Dtype::BF16).evidence_bits, 0.0);
  gain.push_back(1.0 + 0x1p-7);
  EXPECT_EQ(gain_shifts(gain, Dtype::BF16).evidence_bits, 20.0);
  EXPECT_EQ(gain_shifts(gain, Dtype::F32).evidence_bits, 0.0);
}

}  // namespace
}  // namespace normscope::models
