#include <normscope/documents/heads.hpp>

#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/checkpoint/safetensors.hpp>

#include "support/scratch.hpp"

namespace normscope::documents {
namespace {

TEST(HeadsDocument, TellsPassesApart) {
  const test::Scratch scratch;
  const std::vector<double> gain(6, 1.0);
  checkpoint::write_safetensors(
      scratch / "m.safetensors",
      std::vector{checkpoint::NewTensor{"first", Dtype::F64, {6}, std::as_bytes(std::span(gain))}});
  model::Model model;
  model.heads.emplace_back();
  const std::vector<audit::HeadReach> later{{.pass = "first", .refused = "the norm it reads is not known"},
                                            {.norm = "second", .pass = "later", .refused = "too large"}};
  const nlohmann::json json = heads(checkpoint::Checkpoint(scratch / "m.safetensors"), model, later, {});
  EXPECT_EQ(json["heads"][0]["pass"], "first");
  EXPECT_TRUE(json["heads"][0]["norm"].is_null() || json["heads"][0]["norm"].get<std::string>().empty());
  EXPECT_EQ(json["heads"][1]["pass"], "later");
  EXPECT_EQ(json["heads"][1]["norm"], "second");
}

}  // namespace
}  // namespace normscope::documents
