#include <normscope/certificates/model_heads.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/checkpoint/safetensors.hpp>
#include <normscope/core/error.hpp>

#include "support/scratch.hpp"

namespace normscope::certificates {
namespace {

using Json = nlohmann::json;

/// Queries and keys √2 u, |u| <= 1, in the plane: scores of half their product, so a spread is 2 |u| at most.
class VerifyHeads : public testing::Test {
 protected:
  VerifyHeads() {
    const std::vector<double> identity = {1, 0, 0, 1};
    const std::vector<double> gain = {1, 1};
    const auto tensor = [](const char* name, std::vector<std::uint64_t> shape,
                           const std::vector<double>& data) {
      return checkpoint::NewTensor{name, Dtype::F64, std::move(shape), std::as_bytes(std::span(data))};
    };
    checkpoint::write_safetensors(scratch_ / "m.safetensors",
                                  std::vector{tensor("norm", {2}, gain), tensor("query", {2, 2}, identity),
                                              tensor("key", {2, 2}, identity)});
    model::Head& head = model_.heads.emplace_back();
    head.head_dim = 2;
    head.scale = 0.5;
    head.norm = "norm";
    const auto linear = [](const char* name) {
      return model::Linear{
          .role = name, .weight = {.tensor = name, .count = 4}, .in = 2, .stored_out = 2, .out = 2};
    };
    head.query = linear("query");
    head.key = linear("key");
    model::Norm& norm = model_.norms.emplace_back();
    norm.name = "norm";
    norm.kind = NormKind::rms;
    norm.width = 2;
    norm.gain = model::Slice{.tensor = "norm", .count = 2};
    norm.readers = {*head.query, *head.key};
    const Json uniform = {{"query", {0, 0}}, {"unavoidable", Json::array()}};
    const Json sharp = {{"query", {0, 1}}, {"keys", nullptr}, {"multiplier", 4}};
    entry_ = {{"layer", 0},
              {"head", 0},
              {"pass", nullptr},
              {"key_value_head", 0},
              {"head_dim", 2},
              {"scale", 0.5},
              {"norm", "norm"},
              {"query", "query"},
              {"key", "key"},
              {"value", nullptr},
              {"rotary", false},
              {"rotation", nullptr},
              {"soft_cap", nullptr},
              {"window", nullptr},
              {"uniform_spread", 1e-9},
              {"sharp_spread", 2.0 - 1e-9},
              {"uniform_bounds", {0, 1e-9}},
              {"sharp_bounds", {2.0 - 1e-9, 2.0 + 1e-9}},
              {"certificates",
               {{"norm", {{"kind", "rms"}}},
                {"query_norm", nullptr},
                {"key_norm", nullptr},
                {"uniform", uniform},
                {"sharp", sharp}}}};
  }
  [[nodiscard]] Verification verified(const Json& entry) const {
    const Json document = {{"schema", "normscope.heads/1"},
                           {"inputs", {{"arguments", Json::array()}, {"arrays", Json::array()}}},
                           {"heads", {entry}}};
    const checkpoint::Checkpoint file(scratch_ / "m.safetensors");
    return verify_heads(Result(document.dump(), "result"), ModelHeads(file, model_), {.threads = 1});
  }

  test::Scratch scratch_;
  model::Model model_;
  Json entry_;
};

TEST_F(VerifyHeads, GoodResultsPass) {
  const Verification got = verified(entry_);
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << ": " << got.failed[0].reason;
  EXPECT_GT(got.checked, 4u);
  ASSERT_EQ(got.not_checkable.size(), 1u);
}

TEST_F(VerifyHeads, ForgedOnesFail) {
  const auto fails = [&](const auto& change) {
    Json entry = entry_;
    change(entry);
    return !verified(entry).failed.empty();
  };
  EXPECT_TRUE(fails([](Json& entry) { entry["sharp_bounds"][1] = 2.0 - 1e-10; }));
  EXPECT_TRUE(fails([](Json& entry) { entry["sharp_bounds"][0] = entry["sharp_spread"] = 2.0 + 1e-10; }));
  EXPECT_TRUE(fails([](Json& entry) { entry["uniform_bounds"][0] = 1e-10; }));
  EXPECT_TRUE(fails([](Json& entry) { entry["certificates"]["sharp"]["multiplier"] = 3.9; }));
  EXPECT_TRUE(fails([](Json& entry) { entry["certificates"]["sharp"]["query"] = {0.0, 1.0 + 1e-9}; }));
  EXPECT_TRUE(fails([](Json& entry) { entry["certificates"]["uniform"]["query"] = {1e-6, 0.0}; }));
  EXPECT_TRUE(fails([](Json& entry) { entry["scale"] = 0.25; }));
  EXPECT_TRUE(fails([](Json& entry) { entry["soft_cap"] = 1.0; }));
  EXPECT_TRUE(fails([](Json& entry) { entry["certificates"]["norm"]["kind"] = "layer"; }));
  EXPECT_TRUE(fails([](Json& entry) { entry["distances"] = nullptr; }));
  // Half a unit in the last place beyond the attained value is rounding; 1e-13 relative is not.
  EXPECT_FALSE(fails([](Json& entry) { entry["sharp_bounds"][0] = entry["sharp_spread"] = 2.0; }));
  EXPECT_TRUE(fails([](Json& entry) { entry["sharp_bounds"][0] = entry["sharp_spread"] = 2.0 + 1e-13; }));
}

TEST_F(VerifyHeads, FactsOfTheModelAreHeldAgainstIt) {
  model_.heads[0].rotary = model::Rotary{.dims = 2, .frequencies = {0.1}, .score_factor = 2.0, .context = 7};
  model_.heads[0].window = 9;
  entry_.erase("certificates");
  entry_["rotary"] = true;
  entry_["window"] = 9;
  entry_["rotation"] = {{"dims", 2},
                        {"interleaved", false},
                        {"score_factor", 2.0},
                        {"frequencies_known", true},
                        {"context", 7}};
  const Verification got = verified(entry_);
  EXPECT_TRUE(got.failed.empty());
  EXPECT_EQ(got.not_checkable.size(), 2U);
  const Json rotations = {{"dims", 4},
                          {"interleaved", true},
                          {"score_factor", 1.0},
                          {"frequencies_known", false},
                          {"context", 8}};
  for (const auto& [name, value] : rotations.items()) {
    Json entry = entry_;
    entry["rotation"][name] = value;
    EXPECT_EQ(verified(entry).failed.size(), 1U) << name;
  }
  const Json others = {{"window", 8},      {"rotary", false}, {"rotation", nullptr}, {"head_dim", 3},
                       {"layer", 1},       {"norm", "other"}, {"query", "key"},      {"key_value_head", 1},
                       {"value", "value"}, {"pass", "first"}, {"stack", "encoder"}};
  for (const auto& [name, value] : others.items()) {
    Json entry = entry_;
    entry[name] = value;
    EXPECT_EQ(verified(entry).failed.size(), 1U) << name;
  }
}

TEST_F(VerifyHeads, HeadsThatAreNotModelledAreNotProved) {
  model_.heads[0].not_modelled = "position_embedding_type: relative_key";
  EXPECT_FALSE(verified(entry_).failed.empty());
  Json refused = entry_;
  refused["refused"] = "not modelled";
  EXPECT_TRUE(verified(refused).failed.empty());
  model_.heads.clear();
  EXPECT_THROW((void)verified(entry_), Error);
}

}  // namespace
}  // namespace normscope::certificates
