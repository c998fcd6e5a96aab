#include <normscope/verify/verify.hpp>

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "verify/results.hpp"

/// Certificates in arrays beside the JSON, as --certificates FOLDER writes them.
namespace normscope::verify {
namespace {

using test::Json;

class Arrays : public Folder {
 public:
  explicit Arrays(std::map<std::string, std::vector<double>> arrays) : arrays_(std::move(arrays)) {}
  [[nodiscard]] std::vector<double> read(const std::string& name) const override {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) throw Error(ErrorCode::Io, name + ".npy: does not exist");
    return found->second;
  }

 private:
  std::map<std::string, std::vector<double>> arrays_;
};

using Values = std::vector<double>;

Verification verified_keys(const Json& json, const Values& selectable, const Values& queries,
                           const Values& weights) {
  const Arrays folder({{"selectable", selectable}, {"queries", queries}, {"weights", weights}});
  return verify_select(test::result(json), {test::keys.data(), 4, 2}, false, &folder, {.threads = 1});
}

Json select_without_certificates() {
  Json json = test::select_result();
  json["verdicts"][0].erase("query");
  json["verdicts"][3].erase("weights");
  return json;
}

const Values half_of_each = {3, 1, 0.5, 3, 2, 0.5};

TEST(VerifySelectFolder, QueriesAndWeightsAreRead) {
  const Json json = select_without_certificates();
  const Verification got = verified_keys(json, {0}, {-1, -1}, half_of_each);
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << got.failed[0].reason;
  EXPECT_TRUE(got.not_checkable.empty());
  EXPECT_EQ(verified_keys(json, {0}, {1, 1}, half_of_each).failed.size(), 1U);
  EXPECT_FALSE(verified_keys(json, {0}, {-1, -1}, {3, 1, 0.5, 3, 2, 0.6}).failed.empty());
  EXPECT_EQ(verified_keys(json, {}, {}, half_of_each).not_checkable.size(), 1U);
  EXPECT_EQ(verified_keys(json, {0}, {-1, -1}, {}).not_checkable.size(), 1U);
}

TEST(VerifySelectFolder, WhatTheJsonHasIsNotReplaced) {
  const Json json = test::select_result();
  const Verification got = verified_keys(json, {0, 1}, {1, 1, 1, 1}, {3, 0, 1.0});
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << got.failed[0].reason;
  EXPECT_TRUE(got.not_checkable.empty());
}

TEST(VerifySelectFolder, ArraysOfOtherShapesAreRefused) {
  const Json json = select_without_certificates();
  EXPECT_THROW((void)verified_keys(json, {0}, {-1}, half_of_each), Error);
  EXPECT_THROW((void)verified_keys(json, {0}, {-1, -1}, {3, 1}), Error);
  for (const double row : {-1.0, 0.5, 4.0}) {
    EXPECT_THROW((void)verified_keys(json, {row}, {-1, -1}, half_of_each), Error) << row;
    EXPECT_THROW((void)verified_keys(json, {0}, {-1, -1}, {row, 1, 0.5}), Error) << row;
    EXPECT_THROW((void)verified_keys(json, {0}, {-1, -1}, {3, row, 0.5}), Error) << row;
  }
}

Verification verified_tokens(const Json& json, std::map<std::string, Values> arrays) {
  const Arrays folder(std::move(arrays));
  const VocabularyHead head{.norm = {.kind = NormKind::rms, .width = 1},
                            .unembedding = {test::weights.data(), 3, 1},
                            .bias = test::bias};
  return verify_reach(test::result(json), head, &folder, {.threads = 1});
}

TEST(VerifyReachFolder, WitnessesAreRead) {
  Json json = test::reach_result();
  json["proofs"][0]["witness"] = json["proofs"][1]["witness"] = "elsewhere";
  const auto with = [&](const Values& tokens, const Values& points) {
    return verified_tokens(json, {{"reachable", tokens}, {"witnesses", points}});
  };
  const Verification got = with({0, 1}, {0.5, -0.5});
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << got.failed[0].reason;
  EXPECT_TRUE(got.not_checkable.empty());
  // The lead, and the probability that follows from it.
  EXPECT_EQ(with({0, 1}, {-0.5, -0.5}).failed.size(), 2U);
  EXPECT_EQ(with({1, 0}, {0.5, -0.5}).failed.size(), 4U);
  EXPECT_EQ(with({1}, {-0.5}).not_checkable[0].item, "lead.lower[0]");
  // Numbers that are no token's belong to no token.
  EXPECT_EQ(with({0, -1, 0x1p53, 1}, {0.5, 7, 7, -0.5}).failed.size(), 0U);
  EXPECT_THROW((void)with({0, 1}, {0.5}), Error);
  EXPECT_THROW((void)verified_tokens(json, {{"reachable", {0, 1}}}), Error);
}

TEST(VerifyReachFolder, PointsOfProbabilityAreRead) {
  Json json = test::reach_result();
  json["max_probability"]["lower"][0] = 0.678;
  json["max_probability"]["upper"][0] = 0.738;
  json["max_probability"]["refined"] = {0};
  json["proofs"][0]["probability_point"] = "elsewhere";
  json["proofs"][0]["probability_tangent"] = "elsewhere";
  const auto with = [&](double point, double tangent) {
    return verified_tokens(json, {{"probability_tokens", {0}},
                                  {"probability_points", {point}},
                                  {"tangent_tokens", {0}},
                                  {"tangent_points", {tangent}}});
  };
  EXPECT_TRUE(with(0.8, 0.99).failed.empty());
  EXPECT_EQ(with(0.1, 0.99).failed.size(), 1U);
  EXPECT_EQ(with(0.8, 0.1).failed.size(), 1U);
}

/// Token 2 never leads within |u| <= 1; with the last bias at −1.5 it would lead nowhere, and with one below
/// the others' largest it leads far outside the ball in no direction either. With rows (1, −1, 3) it does.
Json far_result(const Json& witness) {
  Json json = test::reach_result();
  json["unreachable"][0]["without_ball"] = "yes";
  json["unreachable"][0]["without_ball_weights"] = Json::array();
  json["unreachable"][0]["without_ball_witness"] = witness;
  json["unreachable_without_ball"] = 0;
  return json;
}

TEST(VerifyReachFolder, WitnessesWithoutTheBallHaveAHeight) {
  // Logits u, −u and 3u − 5: the last leads from u = 2.5 on, and in the direction of u = 1 alone.
  const Values rows = {1, -1, 3};
  const Values offsets = {0, 0, -5};
  const VocabularyHead head{
      .norm = {.kind = NormKind::rms, .width = 1}, .unembedding = {rows.data(), 3, 1}, .bias = offsets};
  const auto leads = [&](const Json& witness, std::map<std::string, Values> arrays) {
    const Arrays folder(std::move(arrays));
    const Verification got = verify_reach(test::result(far_result(witness)), head, &folder, {.threads = 1});
    for (const Finding& found : got.failed) {
      if (found.reason.find("without the ball") != std::string::npos) return false;
    }
    return true;
  };
  EXPECT_TRUE(leads({{"point", {2.6}}, {"height", 1.0}}, {}));
  EXPECT_FALSE(leads({{"point", {2.4}}, {"height", 1.0}}, {}));
  EXPECT_TRUE(leads({{"point", {0.26}}, {"height", 0.1}}, {}));
  // A height of 0 or less is none: a direction alone proves nothing of a logit with an offset.
  EXPECT_THROW((void)leads({{"point", {2.6}}, {"height", 0.0}}, {}), Error);
  EXPECT_FALSE(leads("elsewhere", {{"far_tokens", {2}}, {"far_points", {2.6, -1.0}}}));
  EXPECT_TRUE(leads("elsewhere", {{"far_tokens", {2}}, {"far_points", {2.6, 1.0}}}));
  EXPECT_FALSE(leads("elsewhere", {{"far_tokens", {2}}, {"far_points", {2.4, 1.0}}}));
}

}  // namespace
}  // namespace normscope::verify
