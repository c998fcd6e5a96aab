#include <normscope/certificates/verify.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "certificates/results.hpp"

namespace normscope::certificates {
namespace {

using test::Json;
using test::reach_result;

bool says(const Verification& got, const std::string& reason) {
  return std::any_of(got.failed.begin(), got.failed.end(),
                     [&](const Finding& found) { return found.reason.find(reason) != std::string::npos; });
}

/// The head of `reach_result`, with an epsilon of 0: its norm has the outputs u = −1 and u = 1 alone.
Verification at_two_points(const Json& json) {
  const VocabularyHead head{.norm = {.kind = NormKind::rms, .width = 1, .eps = 0.0},
                            .unembedding = {test::weights.data(), 3, 1},
                            .bias = test::bias};
  return verify_reach(test::result(json), head, nullptr, {.threads = 1});
}

Json two_points_result() {
  Json json = reach_result();
  json["norm"]["eps"] = 0.0;
  json["sphere"] = true;
  json["nearest"] = Json::array();
  // At u = −1 the logits are −1, 1, −0.5, at u = 1 they are 1, −1, −0.5.
  for (const char* end : {"lower", "upper"}) json["lead"][end] = {1.5, 1.5, nullptr};
  json["lead"]["upper"][2] = json["unreachable"][0]["lead_at_most"] = -1.5;
  json["unreachable"][0]["weights"] = Json::array();
  json["unreachable"][0]["ends"] = {1, 0};
  for (int i = 0; i < 2; ++i) {
    json["proofs"][i]["weights"] = Json::array();
    json["proofs"][i]["ends"] = i == 0 ? std::vector<int>{1, 2} : std::vector<int>{2, 0};
  }
  // 1/(1 + e^-1.5 + e^-2) = 0.736 at the better of the points; e^-1.5/(1 + e^-1.5 + e^-2) = 0.164 of token 2.
  json["max_probability"] = {
      {"lower", {0.57, 0.57, 0.0}}, {"upper", {0.737, 0.737, 0.165}}, {"refined", Json::array()}};
  return json;
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

TEST(VerifyReachAtTwoPoints, ProbabilitiesMayUnderflow) {
  Json json = two_points_result();
  json["logit_scale"] = 1000.0;
  json["scale"] = 1000.0 * json["scale"].get<double>();
  for (const char* end : {"lower", "upper"}) {
    for (Json& lead : json["lead"][end]) {
      if (!lead.is_null()) lead = 1000.0 * lead.get<double>();
    }
  }
  json["unreachable"][0]["lead_at_most"] = -1500.0;
  // Token 2 has e^-1500, beside a token of which it has e^1500.
  json["max_probability"] = {
      {"lower", {0.9, 0.9, 0.0}}, {"upper", {1.0, 1.0, 1e-300}}, {"refined", Json::array()}};
  const VocabularyHead head{.norm = {.kind = NormKind::rms, .width = 1, .eps = 0.0},
                            .unembedding = {test::weights.data(), 3, 1},
                            .bias = test::bias,
                            .scale = 1000.0};
  const Verification got = verify_reach(test::result(json), head, nullptr, {.threads = 1});
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << " " << got.failed[0].reason;
}

TEST(VerifyReachAtTwoPoints, BothPointsBoundALead) {
  const Verification got = at_two_points(two_points_result());
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << got.failed[0].reason;
  const auto fails = [](const auto& change) {
    Json json = two_points_result();
    change(json);
    return !at_two_points(json).failed.empty();
  };
  EXPECT_TRUE(fails([](Json& json) { json["lead"]["upper"][0] = 1.499999; }));
  EXPECT_TRUE(fails(
      [](Json& json) { json["lead"]["upper"][2] = json["unreachable"][0]["lead_at_most"] = -1.500001; }));
  // At each point another token than the one stated leads it.
  EXPECT_TRUE(fails([](Json& json) { json["unreachable"][0]["ends"] = {0, 0}; }));
  EXPECT_TRUE(fails([](Json& json) { json["unreachable"][0]["ends"] = {1, 1}; }));
  // A token's lead over itself is no bound.
  EXPECT_TRUE(fails([](Json& json) { json["unreachable"][0]["ends"] = {1, 2}; }));
  EXPECT_TRUE(fails([](Json& json) { json["proofs"][0]["ends"] = {0, 2}; }));
  EXPECT_THROW(fails([](Json& json) { json["unreachable"][0]["ends"] = {1}; }), Error);
  EXPECT_TRUE(fails([](Json& json) { json["max_probability"]["upper"][0] = 0.735; }));
  EXPECT_TRUE(fails([](Json& json) { json["max_probability"]["upper"][2] = 0.163; }));
}

// At u = −1 token 0 leads token 1 by 1e-6; the size of token 2, which is far below both there, is no tie for
// that.
TEST(VerifyReachAtTwoPoints, ALargeTokenAtOnePointMakesNoTieAtTheOther) {
  const std::vector<double> rows{1.0, 1.0 + 1e-6, 1e10};
  Json json = two_points_result();
  json["scale"] = (rows[0] + rows[1] + rows[2]) / 3.0;
  json["tie"] = 1e-12 * (rows[0] + rows[1] + rows[2]) / 3.0;
  json["unreachable"][0]["token"] = 0;
  json["unreachable"][0]["ends"] = {1, 2};
  json["unreachable"][0]["lead_at_most"] = json["lead"]["upper"][0] = 1.1e-6;
  std::swap(json["proofs"][0], json["proofs"][2]);
  const VocabularyHead head{.norm = {.kind = NormKind::rms, .width = 1, .eps = 0.0},
                            .unembedding = {rows.data(), 3, 1}};
  const Verification got = verify_reach(test::result(json), head, nullptr, {.threads = 1});
  EXPECT_TRUE(std::any_of(got.failed.begin(), got.failed.end(), [](const Finding& found) {
    return found.item == "proofs[0]" && found.reason.find("exceeds a tie") != std::string::npos;
  }));
}

TEST(VerifyReachAtTwoPoints, APointStandsForTheNearestOfThem) {
  Json json = two_points_result();
  json["proofs"][0]["probability_point"] = {0.5};
  json["max_probability"]["refined"] = {0};
  json["max_probability"]["lower"][0] = 0.73;
  EXPECT_TRUE(at_two_points(json).failed.empty());
  json["max_probability"]["lower"][0] = 0.74;
  EXPECT_FALSE(at_two_points(json).failed.empty());
}

TEST(VerifyReachAtTwoPoints, ThereAreNoneInABall) {
  Json json = two_points_result();
  json["norm"]["eps"] = 1e-5;
  json["sphere"] = false;
  const VocabularyHead head{.norm = {.kind = NormKind::rms, .width = 1},
                            .unembedding = {test::weights.data(), 3, 1},
                            .bias = test::bias};
  EXPECT_TRUE(says(verify_reach(test::result(json), head, nullptr, {.threads = 1}), "do not bound its lead"));
}

// Logits u₁, −u₁ and −0.5 on a circle, where a token leads at more than two points.
TEST(VerifyReachAtTwoPoints, ThereAreMoreInTwoDimensions) {
  Json json = two_points_result();
  json["width"] = 2;
  const double half = 0.70710678118654752;  // √2 u₁ = u₁/half
  const std::vector<double> rows = {half, 0, -half, 0, 0, 0};
  for (int i = 0; i < 2; ++i) json["proofs"][i]["witness"] = {i == 0 ? 1.0 : -1.0, 0.0};
  const VocabularyHead head{.norm = {.kind = NormKind::rms, .width = 2, .eps = 0.0},
                            .unembedding = {rows.data(), 3, 2},
                            .bias = test::bias};
  EXPECT_TRUE(says(verify_reach(test::result(json), head, nullptr, {.threads = 1}), "do not bound its lead"));
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
}  // namespace normscope::certificates
