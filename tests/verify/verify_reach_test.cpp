#include <normscope/verify/verify.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "verify/results.hpp"

namespace normscope::verify {
namespace {

using test::Json;
using test::reach_result;

bool says(const Verification& got, const std::string& reason) {
  return std::any_of(got.failed.begin(), got.failed.end(),
                     [&](const Finding& found) { return found.reason.find(reason) != std::string::npos; });
}

/// `reach_result` with a bias of the norm of 2^40 whose part of the logits the biases of tokens take back.
TEST(VerifyReach, ALargeBiasHidesNoDigits) {
  constexpr double shift = 0x1p40;
  const std::vector<double> bias{-shift, shift, -0.5};
  const VocabularyHead head{.norm = {.kind = NormKind::rms, .width = 1, .eps = 1e-5, .bias = {shift}},
                            .unembedding = {test::weights.data(), 3, 1},
                            .bias = bias};
  const auto holds = [&](const Json& json) {
    return verify_reach(test::result(json), head, nullptr, {.threads = 1}).failed.empty();
  };
  Json json = reach_result();
  json["nearest"] = Json::array();
  EXPECT_TRUE(holds(json));
  json["lead"]["lower"][0] = 1.0 + 1e-12;
  EXPECT_FALSE(holds(json)) << "the other logits are u and -u still";
  json["lead"]["lower"][0] = 1.0;
  json["lead"]["upper"][1] = 1.5 - 1e-12;
  EXPECT_FALSE(holds(json));
}

/// The last token undecided: only what its lead is at most is stated.
Json undecided_result() {
  Json json = reach_result();
  json["decided"] = 3;
  json["undecided"] = json["unreachable"];
  json["unreachable"] = Json::array();
  json["proofs"][2]["answer"] = "undecided";
  return json;
}

Verification verified(const Json& json) {
  const VocabularyHead head{.norm = {.kind = NormKind::rms, .width = 1},
                            .unembedding = {test::weights.data(), 3, 1},
                            .bias = test::bias};
  return verify_reach(test::result(json), head, nullptr, {.threads = 1});
}

TEST(VerifyReachUndecided, ItsUpperEndIsCheckedAndNothingElse) {
  const Verification got = verified(undecided_result());
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << got.failed[0].reason;
  ASSERT_EQ(got.not_checkable.size(), 1U);
  EXPECT_EQ(got.not_checkable[0].item, "proofs[2]");
  const auto fails = [](const auto& change) {
    Json json = undecided_result();
    change(json);
    return !verified(json).failed.empty();
  };
  EXPECT_TRUE(
      fails([](Json& json) { json["lead"]["upper"][2] = json["undecided"][0]["lead_at_most"] = -0.500001; }));
  // It need not be below a tie.
  EXPECT_FALSE(fails([](Json& json) {
    json["lead"]["upper"][2] = json["undecided"][0]["lead_at_most"] = 0.1;
    json["max_probability"]["upper"][2] = 0.53;
  }));
  EXPECT_TRUE(fails([](Json& json) { json["undecided"][0]["without_ball_weights"][0]["weight"] = 0.5; }));
  EXPECT_THROW(fails([](Json& json) { json["proofs"][2]["answer"] = "no"; }), Error);
  EXPECT_THROW(fails([](Json& json) { json["undecided"].push_back(json["undecided"][0]); }), Error);
  EXPECT_THROW(fails([](Json& json) { json["undecided"][0]["token"] = 0; }), Error);
  EXPECT_THROW(fails([](Json& json) { json["undecided"][0]["lead_at_most"] = -0.6; }), Error);
}

TEST(VerifyReachUndecided, AnOpenTokenIsOnlyCounted) {
  Json json = reach_result();
  json["decided"] = 2;
  json["unreachable"] = Json::array();
  json["unreachable_without_ball"] = 0;
  json["proofs"][2]["answer"] = "open";
  json["complete"] = false;
  json["left_out"]["tokens"] = 1;
  json["lead"]["upper"][2] = nullptr;
  json["max_probability"]["upper"][2] = 1.0;
  const Verification got = verified(json);
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << got.failed[0].reason;
  ASSERT_EQ(got.not_checkable.size(), 1U);
  EXPECT_EQ(got.not_checkable[0].item, "1 token");
  json["decided"] = 3;
  EXPECT_TRUE(says(verified(json), "are not those of the tokens"));
}

TEST(VerifyReach, OwnDirectionsAreWorkedOut) {
  Json json = reach_result();
  json["nearest"] = Json::array();
  json["proofs"][0]["witness"] = json["proofs"][1]["witness"] = "own_direction";
  // At u = 1 the first leads the last by 1.5.
  json["lead"]["lower"] = {1.4999, 1.4999, nullptr};
  EXPECT_TRUE(verified(json).failed.empty());
  json["lead"]["lower"][1] = 1.500001;
  // The lead, and the probability that would follow from it.
  EXPECT_EQ(verified(json).failed.size(), 2U);
}

// Capped at 2, the logits of u = 0.5 are 0.490, −0.490 and −0.490, those of u = 0.8 are 0.760, −0.760 and
// −0.490.
TEST(VerifyReach, ProbabilitiesBehindASoftCapAreThoseOfTheirPoints) {
  const VocabularyHead head{.norm = {.kind = NormKind::rms, .width = 1},
                            .unembedding = {test::weights.data(), 3, 1},
                            .bias = test::bias,
                            .soft_cap = 2.0};
  const auto passes = [&](double lower, const Json& point) {
    Json json = reach_result();
    json["soft_cap"] = 2.0;
    json["max_probability"]["lower"][0] = lower;
    if (!point.is_null()) json["proofs"][0]["probability_point"] = point;
    json["max_probability"]["refined"] = {0};
    return verify_reach(test::result(json), head, nullptr, {.threads = 1}).failed.empty();
  };
  EXPECT_TRUE(passes(0.571, nullptr));
  EXPECT_FALSE(passes(0.5715, nullptr));
  EXPECT_TRUE(passes(0.664, {0.8}));
  EXPECT_FALSE(passes(0.6650, {0.8}));
  // The better of the witness and of a point.
  EXPECT_TRUE(passes(0.571, {0.1}));
  // 0.924, −0.924 and −0.490 in its own direction.
  Json json = reach_result();
  json["soft_cap"] = 2.0;
  json["proofs"][0]["witness"] = "own_direction";
  json["max_probability"]["lower"][0] = 0.713;
  EXPECT_TRUE(verify_reach(test::result(json), head, nullptr, {.threads = 1}).failed.empty());
}

TEST(VerifyReach, CountsAndSizesAreTheInputs) {
  const auto fails = [](const auto& change) {
    Json json = reach_result();
    change(json);
    return !verified(json).failed.empty();
  };
  EXPECT_TRUE(fails([](Json& json) { json["reachable"] = 3; }));
  // Nothing is known of a lead from below that is not stated.
  EXPECT_TRUE(fails([](Json& json) { json["max_probability"]["lower"][2] = 0.1; }));
  EXPECT_TRUE(fails([](Json& json) { json["lead"]["lower"][0] = nullptr; }));
  EXPECT_TRUE(fails([](Json& json) { json["unreachable_without_ball"] = 0; }));
  EXPECT_TRUE(fails([](Json& json) { json["decided"] = 2; }));
  EXPECT_TRUE(fails([](Json& json) { json["nearest"][0]["lead_at_least"] = 0.5; }));
  EXPECT_TRUE(fails([](Json& json) { json["nearest"][0]["lead_at_most"] = 2.0; }));
  EXPECT_TRUE(fails([](Json& json) { json["norm"]["eps"] = 1e-6; }));
  EXPECT_TRUE(fails([](Json& json) { json["sphere"] = true; }));
  EXPECT_TRUE(fails([](Json& json) { json["logit_scale"] = 2.0; }));
  EXPECT_TRUE(fails([](Json& json) { json["soft_cap"] = 30.0; }));
  EXPECT_TRUE(fails([](Json& json) { json["scale"] = 1.17; }));
  EXPECT_THROW(fails([](Json& json) { json["tie"] = -1e-13; }), Error);
  EXPECT_THROW(fails([](Json& json) { json["without_ball"]["tie"] = -1e-13; }), Error);
  EXPECT_TRUE(fails([](Json& json) { json["without_ball"]["stretch"] = 40.0; }));
  EXPECT_TRUE(fails([](Json& json) { json["without_ball"]["stretch"] = 0.1; }));
  EXPECT_THROW(fails([](Json& json) { json["tokens"] = 4; }), Error);
  EXPECT_THROW(fails([](Json& json) { json["width"] = 2; }), Error);
  EXPECT_THROW(fails([](Json& json) { json["proofs"].erase(0); }), Error);
  EXPECT_THROW(fails([](Json& json) { json["lead"]["upper"].erase(0); }), Error);
  EXPECT_THROW(fails([](Json& json) { json["max_probability"]["lower"].erase(0); }), Error);
}

}  // namespace
}  // namespace normscope::verify
