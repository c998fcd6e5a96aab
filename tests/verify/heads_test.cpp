#include <normscope/verify/verify.hpp>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/files/safetensors.hpp>

#include "support/scratch.hpp"

namespace normscope::verify {
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
      return files::NewTensor{name, Dtype::F64, std::move(shape), std::as_bytes(std::span(data))};
    };
    files::write_safetensors(scratch_ / "m.safetensors",
                             std::vector{tensor("norm", {2}, gain), tensor("query", {2, 2}, identity),
                                         tensor("key", {2, 2}, identity)});
    models::Head& head = model_.heads.emplace_back();
    head.head_dim = 2;
    head.scale = 0.5;
    head.norm = "norm";
    const auto linear = [](const char* name) {
      return models::Linear{
          .role = name, .weight = {.tensor = name, .count = 4}, .in = 2, .stored_out = 2, .out = 2};
    };
    head.query = linear("query");
    head.key = linear("key");
    models::Norm& norm = model_.norms.emplace_back();
    norm.name = "norm";
    norm.kind = NormKind::rms;
    norm.width = 2;
    norm.gain = models::Slice{.tensor = "norm", .count = 2};
    norm.readers = {*head.query, *head.key};
    const Json uniform = {{"query", {0, 0}}, {"unavoidable", Json::array()}};
    const Json sharp = {{"query", {0, 1}}, {"keys", nullptr}, {"multiplier", 4}};
    entry_ = {{"stack", ""},
              {"layer", 0},
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
              {"uniform_without_scaling", true},
              {"certificates",
               {{"norm", {{"kind", "rms"}}},
                {"query_norm", nullptr},
                {"key_norm", nullptr},
                {"uniform", uniform},
                {"sharp", sharp}}}};
  }
  [[nodiscard]] Verification verified(const Json& entry) const {
    const Json arguments = {{{"role", "model"}, {"name", "m"}}};
    const Json document = {{"schema", "normscope.heads/1"},
                           {"version", "0"},
                           {"path", "m"},
                           {"architecture", ""},
                           {"notes", Json::array()},
                           {"inputs", {{"arguments", arguments}, {"arrays", Json::array()}}},
                           {"heads", {entry}}};
    const files::Checkpoint file(scratch_ / "m.safetensors");
    return verify_heads(Result(document.dump(), "result"), ModelHeads(file, model_), {.threads = 1});
  }

  test::Scratch scratch_;
  models::Model model_;
  Json entry_;
};

TEST_F(VerifyHeads, GoodResultsPass) {
  const Verification got = verified(entry_);
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << ": " << got.failed[0].reason;
  EXPECT_GT(got.checked, 4u);
  EXPECT_TRUE(got.not_checkable.empty());
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
  EXPECT_THROW(fails([](Json& entry) { entry["distances"] = nullptr; }), Error);
  // Half a unit in the last place beyond the attained value is rounding; 1e-13 relative is not.
  EXPECT_FALSE(fails([](Json& entry) { entry["sharp_bounds"][0] = entry["sharp_spread"] = 2.0; }));
  EXPECT_TRUE(fails([](Json& entry) { entry["sharp_bounds"][0] = entry["sharp_spread"] = 2.0 + 1e-13; }));
}

TEST_F(VerifyHeads, OneNumberMayStandForBoundsOfTheSharpestSpread) {
  entry_["sharp_bounds"][0] = entry_["sharp_spread"] = 1.9;
  EXPECT_TRUE(verified(entry_).failed.empty());
  entry_["sharp_spread"] = 1.95;
  EXPECT_EQ(verified(entry_).failed.size(), 1U);
  entry_["sharp_bounds"][0] = entry_["sharp_spread"] = 2.1;
  const std::vector<Finding> failed = verified(entry_).failed;
  ASSERT_FALSE(failed.empty());
  EXPECT_TRUE(failed.back().item.ends_with(": sharp_bounds")) << failed.back().item;
}

// Keys of scores 1 and -1, of which a cap of 1 leaves tanh(1) and -tanh(1). By the largest scores alone, 2,
// it would leave no more than tanh(2) between them.
TEST_F(VerifyHeads, BehindASoftCapTheKeysThemselvesAttainTheSpread) {
  model_.heads[0].soft_cap = 1.0;
  entry_["soft_cap"] = 1.0;
  entry_["sharp_bounds"] = {1.523, 1.5232};
  entry_["sharp_spread"] = 1.523;
  entry_["certificates"]["sharp"]["keys"] = {{"high", {0, 1}}, {"low", {0, -1}}};
  EXPECT_TRUE(verified(entry_).failed.empty());
  entry_["certificates"]["sharp"]["keys"]["low"] = {1, 0};
  EXPECT_FALSE(verified(entry_).failed.empty());
}

TEST_F(VerifyHeads, WithoutNormsOfTheirOwnRowsFillTheBall) {
  entry_["own_norms"] = {{"query", nullptr}, {"key", nullptr}, {"queries_fill", 1}, {"keys_fill", 1}};
  EXPECT_TRUE(verified(entry_).failed.empty());
  entry_["own_norms"]["queries_fill"] = 0.5;
  EXPECT_FALSE(verified(entry_).failed.empty());
}

/// The head with a rotation by 0.1 a token, in contexts of 5 tokens.
class VerifyRotaryHeads : public VerifyHeads {
 protected:
  VerifyRotaryHeads() {
    model_.heads[0].rotary = models::Rotary{.dims = 2, .frequencies = {0.1}};
    const Json fast = {{"distances", nullptr},   {"weights", {1}},          {"turns", {1}},
                       {"still", Json::array()}, {"factor", Json::array()}, {"query_multiplier", 2},
                       {"key_multiplier", 0.5},  {"spread", 2.0 + 1e-9}};
    const Json equal = {{"sharp", entry_["certificates"]["sharp"]},
                        {"uniform", entry_["certificates"]["uniform"]}};
    entry_["rotary"] = true;
    entry_["rotation"] = {{"dims", 2},
                          {"interleaved", false},
                          {"score_factor", 1.0},
                          {"frequencies_known", true},
                          {"context", nullptr}};
    entry_["uniform_spread"] = entry_["sharp_spread"] = nullptr;
    entry_["distances"] = {
        {"within", 5},
        {"enumerated", false},
        {"sharp_at_most_anywhere", 2.0 + 1e-9},
        {"uniform_at_most_anywhere", 1e-9},
        {"curve", Json::array()},
        {"at_distance_zero",
         {{"uniform_bounds", entry_["uniform_bounds"]}, {"sharp_bounds", entry_["sharp_bounds"]}}}};
    Json& proof = entry_["certificates"];
    proof["frequencies"] = {0.1};
    proof["at_distance_zero"] = equal;
    proof["at_distance_zero"]["sharp"].erase("keys");
    // Keys that stand along the query after 1 and 2 steps of 0.1.
    proof["sharp"] = {{"everywhere", fast},
                      {"in_context", nullptr},
                      {"by_distance", nullptr},
                      {"query", {1 - 1e-12, 0}},
                      {"keys",
                       {{"high", {std::cos(0.1) * (1 - 1e-12), std::sin(0.1) * (1 - 1e-12)}},
                        {"high_distance", 1},
                        {"low", {-std::cos(0.2) * (1 - 1e-12), -std::sin(0.2) * (1 - 1e-12)}},
                        {"low_distance", 2}}}};
    proof["uniform"]["anywhere"] = {{"query", {0, 0}}, {"proof", fast}};
    proof["uniform"]["anywhere"]["proof"]["spread"] = 1e-9;
  }
  [[nodiscard]] bool holds(const std::vector<std::pair<const char*, Json>>& changes) const {
    Json entry = entry_;
    for (const auto& [path, value] : changes) entry[Json::json_pointer(path)] = value;
    return verified(entry).failed.empty();
  }
};

TEST_F(VerifyRotaryHeads, GoodResultsPass) {
  const Verification got = verified(entry_);
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << ": " << got.failed[0].reason;
}

TEST_F(VerifyRotaryHeads, KeysAreBehindTheQueryInItsContext) {
  for (const int distance : {0, 2, 5}) {
    EXPECT_FALSE(holds({{"/certificates/sharp/keys/high_distance", distance}})) << distance;
  }
  EXPECT_FALSE(holds({{"/certificates/sharp/keys/low_distance", 0}}));
  // In a context of 2 tokens a key is 1 away; without an end, any distance is in it.
  EXPECT_FALSE(holds({{"/distances/within", 2}}));
  EXPECT_TRUE(holds({{"/distances/within", nullptr}}));
  EXPECT_THROW((void)holds({{"/distances/within", 0}}), Error);
  EXPECT_FALSE(holds({{"/certificates/frequencies", {0.2}}}));
  EXPECT_FALSE(holds({{"/distances/enumerated", true}}));
}

TEST_F(VerifyRotaryHeads, AProofOfFewerDistancesThanTheContextHasBoundsNothing) {
  // Everywhere at most 3; at distances below 5, 2 (1 + 2 sin 0.1) by the angle in the middle.
  Json wide = entry_["certificates"]["sharp"]["everywhere"];
  wide["turns"] = {1.5};
  wide["query_multiplier"] = 3.0;
  wide["key_multiplier"] = 0.75;
  wide["spread"] = 3.0 + 1e-9;
  Json slow = wide;
  slow["distances"] = 5;
  slow["turns"] = {2 * std::sin(0.1) + 1e-9};
  slow["still"] = {0, 1};
  slow["factor"] = {1, 0, 0, 1};
  slow["query_multiplier"] = 2 * (1 + 2 * std::sin(0.1)) + 1e-8;
  slow["key_multiplier"] = 0.5 * (1 + 2 * std::sin(0.1)) + 1e-8;
  slow["spread"] = 2.39934;
  const std::vector<std::pair<const char*, Json>> base = {{"/certificates/sharp/everywhere", wide},
                                                          {"/certificates/sharp/in_context", slow},
                                                          {"/distances/sharp_at_most_anywhere", 3.0 + 1e-9},
                                                          {"/sharp_bounds/1", 2.4}};
  const auto with = [&](std::vector<std::pair<const char*, Json>> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return holds(more);
  };
  EXPECT_TRUE(with({}));
  EXPECT_FALSE(with({{"/certificates/sharp/in_context/distances", 4}}));
  EXPECT_TRUE(with({{"/certificates/sharp/in_context/distances", 4}, {"/sharp_bounds/1", 3.0 + 1e-9}}));
  EXPECT_FALSE(with({{"/distances/within", nullptr}}));
  // A proof of some distances is none of all.
  EXPECT_FALSE(with({{"/certificates/sharp/everywhere", slow}, {"/distances/sharp_at_most_anywhere", 2.4}}));
}

TEST_F(VerifyHeads, FactsOfTheModelAreHeldAgainstIt) {
  model_.heads[0].rotary = models::Rotary{.dims = 2, .frequencies = {0.1}, .score_factor = 2.0, .context = 7};
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
  EXPECT_EQ(got.not_checkable.size(), 1U);
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
}  // namespace normscope::verify
