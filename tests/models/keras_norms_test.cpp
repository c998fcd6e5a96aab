#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "models/synthetic.hpp"

namespace normscope::models {
namespace {

using test::Synthetic;

// What `python -m normscope convert` writes, with Keras's configuration as metadata:
// tests/python/foreign_test.py.
TEST(KerasNorms, AreThoseOfTheConfiguration) {
  const Model model = describe(files::Checkpoint(std::filesystem::path(NORMSCOPE_SOURCE_DIR) /
                                                 "tests/models/keras_model.safetensors"));
  EXPECT_EQ(model.evidence, "Keras configuration");
  std::vector<std::string> names;
  for (const Norm& norm : model.norms) names.push_back(norm.name);
  ASSERT_EQ(names, (std::vector<std::string>{"early", "no_bias", "no_gain", "root", "grouped", "over_rows"}));
  EXPECT_DOUBLE_EQ(model.norms[0].eps, 1e-4);
  EXPECT_EQ(model.norms[0].eps_source, Source::metadata);
  EXPECT_TRUE(model.norms[1].gain && !model.norms[1].bias);
  EXPECT_TRUE(!model.norms[2].gain && model.norms[2].bias);
  EXPECT_EQ(model.norms[3].kind, NormKind::rms);
  EXPECT_DOUBLE_EQ(model.norms[3].eps, 1e-6);
  EXPECT_EQ(model.norms[4].groups, 2u);
  EXPECT_EQ(model.norms[5].width, 5u);
  ASSERT_EQ(model.other_norms.size(), 1u);
  EXPECT_EQ(model.other_norms[0].kind, "BatchNorm");
}

TEST(KerasNorms, AreFoundByNameWhereThereIsNoConfiguration) {
  Synthetic file;
  file.add("layers/layer_normalization/vars/0", {8}).add("layers/layer_normalization/vars/1", {8});
  file.add("layers/dense/vars/0", {8, 8});
  const Model model = file.describe();
  ASSERT_EQ(model.norms.size(), 1u);
  EXPECT_EQ(model.norms[0].name, "layers/layer_normalization");
  EXPECT_DOUBLE_EQ(model.norms[0].eps, 1e-3);
  EXPECT_TRUE(model.norms[0].bias);
}

}  // namespace
}  // namespace normscope::models
