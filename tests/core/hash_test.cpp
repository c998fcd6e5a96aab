#include <normscope/core/hash.hpp>

#include <gtest/gtest.h>

namespace normscope {
namespace {

std::uint64_t hash_of(std::string_view text) {
  Fnv hash;
  hash.add(text);
  return hash.value();
}

TEST(Fnv, OfTextsHasThePublishedValues) {
  EXPECT_EQ(hash_of(""), 0xcbf29ce484222325U);
  EXPECT_EQ(hash_of("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(hash_of("foobar"), 0x85944171f73967e8U);
}

TEST(Fnv, BytesAreNotSigned) { EXPECT_NE(hash_of("\xff"), hash_of("\x7f")); }

}  // namespace
}  // namespace normscope
