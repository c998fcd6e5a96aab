#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/norm_spec.hpp>

namespace normscope {
namespace {

TEST(NormKinds, EveryNameIsReadBack) {
  for (const NormKindFacts& row : norm_kinds) EXPECT_EQ(norm_kind(row.name), row.kind);
  EXPECT_EQ(norm_kind_names().size(), norm_kinds.size());
  try {
    static_cast<void>(norm_kind("batch"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "unknown norm kind \"batch\", expected layer, rms, spherical, dyt or derf");
  }
}

TEST(NormKinds, ALargeEpsTurnsNormalizationOff) {
  EXPECT_EQ((NormSpec{.width = 4, .eps = 1e12}).effect(), NormEffect::off);
  EXPECT_EQ((NormSpec{.width = 4, .eps = 1.0}).effect(), NormEffect::normalizes);
  // eps of spherical is added to the squared length.
  EXPECT_EQ((NormSpec{.kind = NormKind::spherical, .width = 4, .eps = 2e8}).effect(), NormEffect::normalizes);
  EXPECT_EQ((NormSpec{.kind = NormKind::spherical, .width = 4, .eps = 4e8}).effect(), NormEffect::off);
  EXPECT_EQ((NormSpec{.kind = NormKind::dyt, .width = 4, .eps = 1e12}).effect(), NormEffect::elementwise);
}

}  // namespace
}  // namespace normscope
