#include <normscope/core/snapshot.hpp>

#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/random.hpp>

namespace normscope {
namespace {

RC_GTEST_PROP(Packed, GivesBackWhatWasPut,
              (const std::vector<double>& values, std::uint32_t word, bool flag)) {
  Packer packer;
  packer.put(values);
  packer.put(word);
  packer.put(flag);
  Unpacker unpacker(packer.bytes());
  std::vector<double> values_back{1.0};
  std::uint32_t word_back = 0;
  bool flag_back = !flag;
  unpacker.get(values_back);
  unpacker.get(word_back);
  unpacker.get(flag_back);
  unpacker.finish();
  RC_ASSERT(values_back == values);
  RC_ASSERT(word_back == word);
  RC_ASSERT(flag_back == flag);
}

TEST(Packed, RandomNumbersGoOn) {
  Random random(3);
  static_cast<void>(random.normal());
  Packer packer;
  packer.put(random);
  Random later(4);
  Unpacker(packer.bytes()).get(later);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(later.normal(), random.normal());
}

RC_GTEST_PROP(Packed, NoticesWhatIsMissingOrLeft,
              (const std::vector<std::uint16_t>& values, std::uint8_t cut)) {
  Packer packer;
  packer.put(values);
  const std::span<const std::byte> bytes = packer.bytes();
  std::vector<std::uint16_t> back;
  Unpacker shorter(bytes.first(bytes.size() - 1 - cut % bytes.size()));
  RC_ASSERT_THROWS_AS(shorter.get(back), Error);
  RC_ASSERT_THROWS_AS(Unpacker(bytes).finish(), Error);
}

TEST(Packed, ALengthBeyondTheBytesAllocatesNothing) {
  Packer packer;
  packer.put(~std::size_t{0});
  std::vector<double> values;
  EXPECT_THROW(Unpacker(packer.bytes()).get(values), Error);
}

}  // namespace
}  // namespace normscope
