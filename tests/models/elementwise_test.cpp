#include <gtest/gtest.h>

#include "synthetic.hpp"

namespace normscope::models {
namespace {

TEST(ElementwiseNorms, AreFoundByTheirScalars) {
  test::Synthetic file;
  file.norm("blocks.0.norm1", 4).add("blocks.0.norm1.alpha", {1});
  file.norm("blocks.0.norm2", 4).add("blocks.0.norm2.alpha", {}).add("blocks.0.norm2.shift", {1});
  file.norm("blocks.1.norm1", 4).add("blocks.1.norm1.alpha", {4});
  const files::Checkpoint checkpoint = file.open();
  const Model model = describe(checkpoint);
  EXPECT_EQ(test::norm_named(model, "blocks.0.norm1").kind, NormKind::dyt);
  EXPECT_EQ(test::norm_named(model, "blocks.0.norm2").kind, NormKind::derf);
  // Not one number: another parameter of that name.
  EXPECT_EQ(test::norm_named(model, "blocks.1.norm1").kind, NormKind::layer);
  const NormSpec spec = read_norm(checkpoint, test::norm_named(model, "blocks.0.norm2"));
  EXPECT_EQ(spec.gain.size(), 4u);
  EXPECT_NE(spec.alpha, 1.0);
  EXPECT_NE(spec.shift, 0.0);
}

}  // namespace
}  // namespace normscope::models
