#include <gtest/gtest.h>

#include <normscope/analysis/report.hpp>

#include "analysis/norms.hpp"
#include "support/data.hpp"

namespace normscope::analysis {
namespace {

TEST(Audit, Gpt2SaysWhatIsKnownOfIt) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/gpt2_small_without_mlp");
  const Report given = audit(files::Checkpoint(path));
  ASSERT_EQ(given.norms.size(), 25U);
  const NormReport& last = given.norms.back();
  EXPECT_EQ(last.norm.name, "ln_f");
  EXPECT_NEAR(last.gain->max, 17.4, 0.05);
  EXPECT_EQ(given.norms[7].gain->negative, 1U);
  EXPECT_EQ(given.norms[0].norm.eps_source, models::Source::config);
  const SharedOutlier* const shared = find_property<SharedOutlier>(given.findings);
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(shared->coordinate, 138U);
}

}  // namespace
}  // namespace normscope::analysis
