#include <normscope/results/documents.hpp>

#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/files/safetensors.hpp>

#include "support/scratch.hpp"

namespace normscope::results {
namespace {

TEST(HeadsDocument, TellsPassesApart) {
  const test::Scratch scratch;
  const std::vector<double> gain(6, 1.0);
  files::write_safetensors(
      scratch / "m.safetensors",
      std::vector{files::NewTensor{"first", Dtype::F64, {6}, std::as_bytes(std::span(gain))}});
  models::Model model;
  model.heads.emplace_back();
  const std::vector<heads::HeadReach> later{{.pass = "first", .refused = "the norm it reads is not known"},
                                            {.norm = "second", .pass = "later", .refused = "too large"}};
  const nlohmann::json json = heads(files::Checkpoint(scratch / "m.safetensors"), model, later, {});
  EXPECT_EQ(json["heads"][0]["pass"], "first");
  EXPECT_TRUE(json["heads"][0]["norm"].is_null() || json["heads"][0]["norm"].get<std::string>().empty());
  EXPECT_EQ(json["heads"][1]["pass"], "later");
  EXPECT_EQ(json["heads"][1]["norm"], "second");
}

}  // namespace
}  // namespace normscope::results
