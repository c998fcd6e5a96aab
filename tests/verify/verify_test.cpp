#include <normscope/verify/verify.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>

#include "../../src/verify/document.hpp"
#include "../../src/verify/exact_numbers.hpp"
#include "verify/results.hpp"

namespace normscope::verify {
namespace {

using test::bias, test::reach_result, test::weights;
using test::Json, test::no_inputs, test::result;
using test::keys, test::select_result;

Verification verify_keys(const Json& json) {
  return verify_select(result(json), {keys.data(), 4, 2}, false, nullptr, {.threads = 1});
}

TEST(VerifySelect, GoodResultsPass) {
  const Verification got = verify_keys(select_result());
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << got.failed[0].reason;
  EXPECT_TRUE(got.not_checkable.empty());
  EXPECT_GT(got.checked, 8u);
}

TEST(VerifySelect, ForgedOnesFail) {
  const auto fails = [](const auto& change) {
    Json json = select_result();
    change(json);
    return !verify_keys(json).failed.empty();
  };
  // Along (−1, −1)/√2 the nearest other keys are 4/√2 away, along (2.5, −1.5)/√8.5 the next one 8/√8.5.
  EXPECT_FALSE(fails([](Json& json) {
    json["margin"]["largest"] = 2.8284271247461896;
    json["verdicts"][0]["margin"] = 2.8284271247461896;
  }));
  EXPECT_TRUE(fails([](Json& json) { json["verdicts"][0]["margin"] = 2.82843; }));
  EXPECT_TRUE(fails([](Json& json) { json["verdicts"][1]["margin"] = 2.75; }));
  EXPECT_TRUE(fails([](Json& json) { json["verdicts"][0]["query"] = {0, 0}; }));
  EXPECT_TRUE(fails([](Json& json) { json["verdicts"][0]["query"] = {1, 1}; }));
  EXPECT_TRUE(fails([](Json& json) { json["verdicts"][3]["weights"][0]["weight"] = 0.5000001; }));
  EXPECT_TRUE(fails([](Json& json) { json["verdicts"][3]["weights"] = {{{"key", 3}, {"weight", 1.0}}}; }));
  EXPECT_TRUE(fails([](Json& json) { json["verdicts"][3]["proof"] = "query"; }));
  EXPECT_TRUE(fails([](Json& json) { json["scale"] = 2.6; }));
  EXPECT_TRUE(fails([](Json& json) {
    json["center"] = {100, 100};
    json["scale"] = 100;
  }));
}

/// A result with integer certificates: the middle is (key 1 + key 2)/2, and key 0 is below x + y = 0.
Json exact_result() {
  Json json = select_result();
  json["tolerance"] = 0.0;
  json["exact"] = {0, 3};
  json["proofs"] = {{"alone", 0},   {"own_direction", 2}, {"query", 0},
                    {"weights", 0}, {"twin", 0},          {"exact", 2}};
  json["verdicts"][0]["proof"] = "exact";
  json["verdicts"][0]["exact"] = {{"answer", "selectable"}, {"query", {"-1", "-1"}}};
  json["verdicts"][3]["proof"] = "exact";
  json["verdicts"][3]["exact"] = {
      {"answer", "unselectable"},
      {"weights", {{{"key", 1}, {"numerator", "1"}}, {{"key", 2}, {"numerator", "1"}}}},
      {"denominator", "2"}};
  return json;
}

TEST(VerifySelect, IntegersAreCheckedWithoutRounding) {
  const Verification got = verify_keys(exact_result());
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << got.failed[0].reason;
  EXPECT_TRUE(got.not_checkable.empty());
  const auto fails = [](const auto& change) {
    Json json = exact_result();
    change(json);
    return !verify_keys(json).failed.empty();
  };
  EXPECT_TRUE(fails([](Json& json) { json["verdicts"][3]["exact"]["denominator"] = "3"; }));
  EXPECT_THROW(fails([](Json& json) { json["verdicts"][3]["exact"]["weights"][0]["numerator"] = "-1"; }),
               Error);
  EXPECT_TRUE(fails([](Json& json) {
    json["verdicts"][3]["exact"]["weights"] = {{{"key", 3}, {"numerator", "2"}}};
  }));
  // A difference far smaller than the rounding of float64.
  EXPECT_TRUE(fails([](Json& json) {
    const std::string half = "1" + std::string(40, '0');
    json["verdicts"][3]["exact"]["weights"] = {{{"key", 1}, {"numerator", half}},
                                               {{"key", 2}, {"numerator", "1" + std::string(39, '0') + "1"}}};
    json["verdicts"][3]["exact"]["denominator"] = "2" + std::string(39, '0') + "1";
  }));
  EXPECT_TRUE(fails([](Json& json) { json["verdicts"][0]["exact"]["query"] = {"0", "0"}; }));
  EXPECT_TRUE(fails([](Json& json) { json["verdicts"][0]["exact"]["query"] = {"1", "-1"}; }));
  EXPECT_TRUE(fails([](Json& json) { json["verdicts"][0].erase("exact"); }));
  EXPECT_TRUE(fails([](Json& json) { json["verdicts"][0]["proof"] = "query"; }));
  EXPECT_TRUE(fails([](Json& json) { json["exact"] = {0}; }));
  EXPECT_FALSE(fails([](Json& json) {
    // Without a margin in float64, the integer certificate is enough.
    json["verdicts"][0]["margin"] = 0.0;
    json["margin"]["least"] = 0.0;
  }));
}

// No entry is 0, and 0.5 is the lowest bit of all.
TEST(VerifySelect, IntegersKeepFractions) {
  const std::vector<double> half = {0.5, 0.5, 4.5, 0.5, 0.5, 4.5, 2.5, 2.5};
  Json json = exact_result();
  json["center"] = {2.0, 2.0};
  const auto verified = [&] {
    return verify_select(result(json), {half.data(), 4, 2}, false, nullptr, {.threads = 1});
  };
  EXPECT_TRUE(verified().failed.empty());
  json["verdicts"][3]["exact"]["denominator"] = "3";
  EXPECT_FALSE(verified().failed.empty());
}

TEST(VerifySelect, AnExactAnswerIsOneOfThree) {
  Json json = select_result();
  json["verdicts"][1]["exact"] = {{"answer", "undecided"}, {"reason", "the limit"}};
  EXPECT_TRUE(verify_keys(json).failed.empty());
  json["verdicts"][1]["exact"] = {{"answer", "perhaps"}};
  EXPECT_THROW((void)verify_keys(json), Error);
}

TEST(VerifySelect, AToleranceIsOneOfEachColumn) {
  // The last key is 1e-10 off the side, in a column of extent 1.5e-9.
  const std::vector<double> thin = {0, 0, 4, 0, 0, 4e-9, 2, 2e-9 + 1e-10};
  Json json = select_result();
  json["selectable"] = 0;
  json["undecided"] = {0, 1, 2};
  json["proofs"] = {{"alone", 0},   {"own_direction", 0}, {"query", 0},
                    {"weights", 1}, {"twin", 0},          {"exact", 0}};
  json["margin"] = nullptr;
  json["center"] = {1.5, (4e-9 + thin[7]) / 4.0};
  json["tolerance"] = 1e-9;
  json["verdicts"][3]["residual"] = 1.1e-10;
  for (int i = 0; i < 3; ++i) json["verdicts"][i] = {{"answer", "undecided"}, {"proof", "none"}};
  const Verification got = verify_select(result(json), {thin.data(), 4, 2}, false, nullptr, {.threads = 1});
  ASSERT_EQ(got.failed.size(), 1U);
  EXPECT_NE(got.failed[0].reason.find("in a column"), std::string::npos);
}

// The triangle with one column 2^-1018 as large, in units of its own: (−t, ∓1) leads by 4 t, (1, 0) by 2.
TEST(VerifySelect, ColumnsFarApartAreCheckedInUnitsOfTheirOwn) {
  const double t = 0x1p-1018;
  const std::vector<double> far = {0, 0, 4, 0, 0, 4 * t, 2, 2 * t};
  const auto fails = [&](const auto& change) {
    Json json = select_result();
    json["proofs"] = {{"alone", 0},   {"own_direction", 0}, {"query", 3},
                      {"weights", 1}, {"twin", 0},          {"exact", 0}};
    // Less than 4 t, as the queries are a little longer than 1.
    const double margin = 3.999 * t;
    json["margin"] = {{"least", margin}, {"median", margin}, {"largest", 2.0}};
    json["center"] = {1.5, 1.5 * t};
    const std::vector<std::vector<double>> queries = {{-t, -1}, {1, 0}, {-t, 1}};
    for (std::size_t i = 0; i < 3; ++i) {
      json["verdicts"][i] = {{"answer", "selectable"}, {"proof", "query"}, {"query", queries[i]}};
      json["verdicts"][i]["margin"] = i == 1 ? 2.0 : margin;
    }
    change(json);
    return !verify_select(result(json), {far.data(), 4, 2}, false, nullptr, {.threads = 1}).failed.empty();
  };
  EXPECT_FALSE(fails([](Json&) {}));
  EXPECT_TRUE(fails([&](Json& json) {
    json["margin"]["least"] = json["verdicts"][0]["margin"] = 3 * t;
    json["verdicts"][0]["query"] = {t, -1};
  }));
  EXPECT_TRUE(
      fails([](Json& json) { json["margin"]["largest"] = json["verdicts"][1]["margin"] = 2.000001; }));
  EXPECT_TRUE(fails([](Json& json) {
    json["margin"]["least"] = json["verdicts"][2]["margin"] = 0.0;
    json["verdicts"][2]["query"] = {0, 0};
  }));
}

TEST(VerifySelect, MissingProofsAreReported) {
  Json json = select_result();
  json["verdicts"][0].erase("query");
  json["verdicts"][3].erase("weights");
  const Verification got = verify_keys(json);
  EXPECT_TRUE(got.failed.empty());
  EXPECT_EQ(got.not_checkable.size(), 2u);
}

Json separate_result(const std::string& answer) {
  Json json = {{"schema", "normscope.separate/1"},
               {"version", "0"},
               {"inputs", no_inputs},
               {"width", 1},
               {"rows", {2, 2}},
               {"ssr", 0.2},
               {"lssr", 0.2},
               {"direction", {1.0}},
               {"rank", 1},
               {"separable", answer},
               {"margin", 1.0},
               {"normal", {1.0}},
               {"offset", 2.25},
               {"a", {{{"row", 1}, {"weight", 1.0}}}},
               {"b", {{{"row", 0}, {"weight", 1.0}}}},
               {"residual", 1.0},
               {"scale", 1.5},
               {"tolerance", 1e-12}};
  return json;
}

Verification verify_sets(const Json& json) {
  static const std::vector<double> a = {4, 3};
  static const std::vector<double> b = {2, 1};
  return verify_separate(result(json), {{{a.data(), 2, 1}, {b.data(), 2, 1}}, {{0, 1}, {0, 1}}});
}

TEST(VerifySeparate, GoodResultsPass) {
  const Verification got = verify_sets(separate_result("yes"));
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << got.failed[0].reason;
  EXPECT_TRUE(got.not_checkable.empty()) << got.not_checkable[0].item;
}

/// A result of two classes of rows, of which only ratio, direction and rank are checked.
Verification verify_ratio(const std::vector<std::vector<double>>& classes, std::size_t width,
                          const std::vector<double>& direction, double lssr, double ssr, std::size_t rank) {
  Json json = separate_result("undecided");
  ClassRows rows;
  json["rows"] = Json::array();
  json["width"] = width;
  for (const std::vector<double>& values : classes) {
    rows.rows.emplace_back(values.data(), values.size() / width, width);
    rows.numbers.emplace_back();
    for (std::size_t row = 0; row < values.size() / width; ++row) rows.numbers.back().push_back(row);
    json["rows"].push_back(values.size() / width);
  }
  json["direction"] = direction;
  json["normal"] = direction;
  json["margin"] = nullptr;
  json["lssr"] = lssr;
  json["ssr"] = ssr;
  json["rank"] = rank;
  return verify_separate(result(json), rows);
}

bool names(const std::vector<Finding>& findings, const std::string& item) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.item == item; });
}

/// Two classes of two rows of an own line each: along it the ratio is 0, along the other axis 1.
const std::vector<std::vector<double>> on_lines = {{0, 0, 0, 2}, {4, 0, 4, 2}};

TEST(VerifySeparate, TheLeastRatioIsProved) {
  const double ssr = 4.0 / 20.0;
  const Verification least = verify_ratio(on_lines, 2, {1, 0}, 0.0, ssr, 2);
  EXPECT_FALSE(names(least.failed, "lssr")) << "the least";
  EXPECT_FALSE(names(least.not_checkable, "lssr"));
  // A direction attains the ratio that is stated, but another has a smaller one.
  EXPECT_TRUE(names(verify_ratio(on_lines, 2, {0, 1}, 1.0, ssr, 2).not_checkable, "lssr"));
  const double diagonal = 4.0 / 20.0;
  EXPECT_TRUE(names(
      verify_ratio(on_lines, 2, {std::sqrt(0.5), std::sqrt(0.5)}, diagonal, ssr, 2).not_checkable, "lssr"));
  // No direction attains it.
  EXPECT_TRUE(names(verify_ratio(on_lines, 2, {0, 1}, 0.5, ssr, 2).failed, "lssr, direction"));
}

TEST(VerifySeparate, TheRankIsProved) {
  const double ssr = 4.0 / 20.0;
  EXPECT_FALSE(names(verify_ratio(on_lines, 2, {1, 0}, 0.0, ssr, 2).not_checkable, "rank"));
  EXPECT_TRUE(names(verify_ratio(on_lines, 2, {1, 0}, 0.0, ssr, 3).failed, "rank"));
  EXPECT_TRUE(names(verify_ratio(on_lines, 2, {1, 0}, 0.0, ssr, 1).not_checkable, "rank"));
  // A column that is twice another: elimination in integers proves that there is no third direction.
  const std::vector<std::vector<double>> flat = {{0, 0, 0, 0, 2, 4}, {4, 0, 0, 4, 2, 4}};
  const auto rank = [&](std::size_t stated) { return verify_ratio(flat, 3, {1, 0, 0}, 0.0, ssr, stated); };
  EXPECT_FALSE(names(rank(2).failed, "rank") || names(rank(2).not_checkable, "rank"));
  EXPECT_TRUE(names(rank(3).failed, "rank"));
}

/// Ranks modulo a prime bound the rank of reals from below at any width and any size of entries.
TEST(VerifySeparate, WideRowsHaveTheirRankModuloAPrime) {
  constexpr std::size_t width = 100;
  std::vector<std::vector<double>> classes(2, std::vector<double>(60 * width));
  for (std::size_t row = 0; row < 120; ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      classes[row / 60][(row % 60) * width + i] =
          std::ldexp(static_cast<double>((row * row * 31 + i * i * i * 17 + row * i * 7) % 101), -30);
    }
    // The sum of two other columns.
    double* const last = &classes[row / 60][(row % 60) * width];
    last[width - 1] = last[0] + last[1];
  }
  EXPECT_EQ(rank_of_differences_at_least({{classes[0].data(), 60, width}, {classes[1].data(), 60, width}}),
            99u);
}

TEST(VerifySeparate, ForgedOnesFail) {
  const auto fails = [](const auto& change) {
    Json json = separate_result("yes");
    change(json);
    return !verify_sets(json).failed.empty();
  };
  EXPECT_TRUE(fails([](Json& json) { json["margin"] = 1.000001; }));
  EXPECT_TRUE(fails([](Json& json) { json["separable"] = "no"; }));
  EXPECT_TRUE(fails([](Json& json) { json["residual"] = 0.999999; }));
  EXPECT_TRUE(fails([](Json& json) { json["normal"] = {-1.0}; }));
  EXPECT_TRUE(fails([](Json& json) { json["offset"] = 3.25; }));
  EXPECT_TRUE(fails([](Json& json) { json["ssr"] = 0.21; }));
  EXPECT_TRUE(fails([](Json& json) { json["a"] = Json::array(); }));
  EXPECT_TRUE(fails([](Json& json) { json["a"][0]["weight"] = 3.0; }));
  EXPECT_THROW(fails([](Json& json) { json["a"][0]["row"] = 7; }), Error);
  EXPECT_THROW(fails([](Json& json) { json["rows"] = {2, 3}; }), Error);
  EXPECT_THROW(fails([](Json& json) { json["width"] = 2; }), Error);
}

Verification verify_tokens(const Json& json) {
  const VocabularyHead head{
      .norm = {.kind = NormKind::rms, .width = 1}, .unembedding = {weights.data(), 3, 1}, .bias = bias};
  return verify_reach(result(json), head, nullptr, {.threads = 1});
}

TEST(VerifyReach, GoodResultsPass) {
  const Verification got = verify_tokens(reach_result());
  EXPECT_TRUE(got.failed.empty()) << got.failed[0].item << got.failed[0].reason;
  EXPECT_TRUE(got.not_checkable.empty());
}

TEST(VerifyReach, ForgedOnesFail) {
  const auto fails = [](const auto& change) {
    Json json = reach_result();
    json["nearest"] = Json::array();
    change(json);
    return !verify_tokens(json).failed.empty();
  };
  EXPECT_TRUE(fails([](Json& json) { json["lead"]["lower"][0] = 1.000001; }));
  EXPECT_TRUE(fails([](Json& json) { json["lead"]["upper"][1] = 1.499999; }));
  EXPECT_TRUE(fails([](Json& json) { json["proofs"][0]["witness"] = {1.5}; }));
  EXPECT_TRUE(fails([](Json& json) { json["proofs"][0]["witness"] = {0.1}; }));
  EXPECT_TRUE(fails([](Json& json) { json["max_probability"]["lower"][0] = 0.58; }));
  EXPECT_TRUE(fails([](Json& json) { json["max_probability"]["upper"][0] = 0.81; }));
  EXPECT_TRUE(fails([](Json& json) { json["unreachable"][0]["weights"][0]["weight"] = 2.0; }));
  EXPECT_TRUE(fails([](Json& json) { json["unreachable"][0]["without_ball_weights"][0]["weight"] = 0.5; }));
  EXPECT_TRUE(fails([](Json& json) { json["tie"] = 1e-6; }));
  EXPECT_TRUE(fails([](Json& json) { json["without_ball"]["tie"] = 1e-6; }));
  EXPECT_THROW(fails([](Json& json) { json["unreachable"] = Json::array(); }), Error);
  EXPECT_THROW(fails([](Json& json) { json["proofs"][0].erase("witness"); }), Error);
}

// Three rows of 1 and less than 2^-40: of the scale, as `reach` states it, 12 bits are left.
TEST(VerifyReach, NearlyEqualRowsHaveTheScaleOfTheirRounding) {
  const std::vector<double> near = {1.0, 1.0 - 0x1p-40, 1.0 + 0x1p-41};
  const VocabularyHead head{
      .norm = {.kind = NormKind::rms, .width = 1}, .unembedding = {near.data(), 3, 1}, .bias = {}};
  const auto is_scale_found_wrong = [&](double scale) {
    Json json = reach_result();
    json["scale"] = scale;
    const Verification got = verify_reach(result(json), head, nullptr, {.threads = 1});
    return std::any_of(got.failed.begin(), got.failed.end(),
                       [](const Finding& f) { return f.item == "scale"; });
  };
  const double scale = 5.0 / 6.0 * 0x1p-40;
  EXPECT_FALSE(is_scale_found_wrong(scale));
  EXPECT_FALSE(is_scale_found_wrong(scale + 0x1p-52));
  EXPECT_FALSE(is_scale_found_wrong(scale - 0x1p-52));
  EXPECT_TRUE(is_scale_found_wrong(scale + 0x1p-47));
}

// At u = 0.8 the first token has 1/(1 + e^-1.6 + e^-1.3) of the probability. Probabilities p there prove that
// it has no more than exp(|Σ p_j (A_0 − A_j)| + Σ p_j (a_0 − a_j) − H(p)) anywhere.
TEST(VerifyReach, PointsBoundProbabilities) {
  Json json = reach_result();
  json["max_probability"]["lower"][0] = 0.678;
  json["max_probability"]["upper"][0] = 0.738;
  EXPECT_FALSE(verify_tokens(json).failed.empty());
  json["proofs"][0]["probability_point"] = {0.8};
  json["proofs"][0]["probability_tangent"] = {0.99};
  json["max_probability"]["refined"] = {0};
  EXPECT_TRUE(verify_tokens(json).failed.empty());
  json["max_probability"]["lower"][0] = 0.6788;
  EXPECT_EQ(verify_tokens(json).failed.size(), 1u);
  // At u = 1 its probability is 0.736.
  json["max_probability"]["upper"][0] = 0.735;
  EXPECT_EQ(verify_tokens(json).failed.size(), 2u);
}

TEST(VerifyReach, WeightsBoundProbabilities) {
  Json json = reach_result();
  json["max_probability"]["upper"][0] = 0.738;
  json["max_probability"]["refined"] = {0};
  const auto holds = [&json](const std::vector<std::pair<int, double>>& on) {
    json["proofs"][0]["probability_weights"] = Json::array();
    for (const auto& [token, weight] : on) {
      json["proofs"][0]["probability_weights"].push_back({{"token", token}, {"weight", weight}});
    }
    return verify_tokens(json).failed.empty();
  };
  // The probabilities at u = 1, 1/(1 + e^-2 + e^-1.5) that of the first, times 2.
  EXPECT_TRUE(holds({{0, 1.472}, {1, 0.1992}, {2, 0.3285}}));
  EXPECT_TRUE(holds({{2, 0.3285}, {0, 1.472}, {1, 0.1992}}));
  EXPECT_FALSE(holds({{0, 1.472}, {1, 0.1992}}));
  // Others that would prove too much, if they were probabilities.
  EXPECT_FALSE(holds({}));
  EXPECT_THROW(holds({{0, 0.0}}), Error);
  EXPECT_THROW(holds({{0, 1.472}, {1, 0.1992}, {2, 0.3285}, {1, -0.1}}), Error);
  EXPECT_THROW(holds({{0, 0.736}, {0, 0.736}, {1, 0.1992}, {2, 0.3285}}), Error);
  EXPECT_FALSE(holds({{0, 1e308}, {1, 1e308}, {2, 1e308}}));
  EXPECT_THROW(holds({{3, 1.0}}), Error);
}

/// The paths of all members that a schema has.
void collect(const Json& schema, const Json& root, const std::string& path, std::set<std::string>& into) {
  if (schema.contains("$ref")) {
    return collect(root["$defs"][schema["$ref"].get<std::string>().substr(8)], root, path, into);
  }
  for (const char* alternatives : {"oneOf", "anyOf"}) {
    if (!schema.contains(alternatives)) continue;
    for (const Json& one : schema[alternatives]) collect(one, root, path, into);
  }
  if (schema.contains("items")) collect(schema["items"], root, path + "[]", into);
  if (!schema.contains("properties")) return;
  for (const auto& [name, member] : schema["properties"].items()) {
    const std::string inner = path.empty() ? name : path + "." + name;
    into.insert(inner);
    collect(member, root, inner, into);
  }
}

/// An entry of a list of any kind: "verdicts[selectable].margin" as "verdicts[].margin".
std::string of_any_kind(std::string_view path) {
  std::string result;
  bool inside = false;
  for (const char c : path) {
    inside = inside && c != ']';
    if (!inside) result += c;
    inside = inside || c == '[';
  }
  return result;
}

TEST(Claims, NameEveryMemberOfEverySchema) {
  for (const char* kind : {"select", "separate", "reach", "heads", "attribute"}) {
    const Json schema = Json::parse(schema_text(kind));
    std::set<std::string> members;
    collect(schema, schema, "", members);
    std::set<std::string> named;
    for (const Claim& claim : claims_of(kind)) {
      named.insert(of_any_kind(claim.path));
      EXPECT_TRUE(members.contains(of_any_kind(claim.path))) << kind << " has no " << claim.path;
    }
    const auto is_named = [&](const std::string& member) {
      for (std::size_t end = 1; end <= member.size(); ++end) {
        const bool whole = end == member.size() || member[end] == '.' || member[end] == '[';
        if (whole && named.contains(member.substr(0, end))) return true;
      }
      // Its own members are named.
      return std::any_of(named.begin(), named.end(), [&](const std::string& name) {
        return name.size() > member.size() && name.substr(0, member.size()) == member &&
               (name[member.size()] == '.' || name[member.size()] == '[');
      });
    };
    for (const std::string& member : members) EXPECT_TRUE(is_named(member)) << kind << ": " << member;
  }
}

TEST(Result, NamesMissingFields) {
  EXPECT_THROW(Result("", "x"), Error);
  EXPECT_THROW(Result("[1]", "x"), Error);
  EXPECT_THROW(result({{"schema", "normscope.count/1"}}), Error);
  EXPECT_THROW(result({{"schema", "normscope.select/1"}}), Error);
  const Result good = result(select_result());
  EXPECT_EQ(good.kind(), "select");
  EXPECT_NO_THROW(good.expect_arrays({}, "nothing"));
  EXPECT_THROW(good.expect_arrays({describe_array("keys", {4, 2}, keys)}, "x"), Error);
}

TEST(Result, MessagesNameThePathOfAField) {
  const auto message = [](const auto& change) -> std::string {
    Json json = select_result();
    change(json);
    try {
      (void)verify_keys(json);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([](Json& json) { json.erase("scale"); }),
            "result: scale is missing, expected the JSON of this version");
  EXPECT_EQ(message([](Json& json) { json["verdicts"][1].erase("answer"); }),
            "result: verdicts[1].answer is missing, expected the JSON of this version");
}

// (0, 1) leads (1, 1) along (1, 0) by nothing, although products of 5e-324 with anything below 1/2 are 0.
TEST(VerifySelect, ALeadThatUnderflowsIsNone) {
  const std::vector<double> two = {0, 1, 0, 1, 0.25, 1, -0.25, 0};
  Json json = select_result();
  for (int i = 0; i < 2; ++i) {
    json["verdicts"][i] = {{"answer", "selectable"}, {"proof", "query"}, {"margin", 5e-324}};
    json["verdicts"][i]["query"] = {i == 0 ? -5e-324 : 5e-324, 0.0};
  }
  const Verification got = verify_select(result(json), {two.data(), 4, 2}, false, nullptr, {.threads = 1});
  for (const char* item : {"verdicts[0].margin", "verdicts[1].margin"}) {
    EXPECT_TRUE(std::any_of(got.failed.begin(), got.failed.end(), [&](const Finding& found) {
      return found.item == item;
    })) << item;
  }
}

TEST(VerifySelect, AMarginIsComparedWithoutATolerance) {
  Json json = select_result();
  // The root of 8 lies between these two.
  json["margin"]["largest"] = json["verdicts"][0]["margin"] = 2.8284271247461898;
  EXPECT_TRUE(verify_keys(json).failed.empty());
  json["margin"]["largest"] = json["verdicts"][0]["margin"] = 2.8284271247461903;
  EXPECT_FALSE(verify_keys(json).failed.empty());
}

TEST(Result, IsReadStrictly) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      (void)Result(text, "result");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto changed = [&](const char* path, const Json& value) {
    Json json = select_result();
    json[Json::json_pointer(path)] = value;
    return message(json.dump());
  };
  EXPECT_EQ(message(select_result().dump()), "");
  EXPECT_NE(changed("/better", 1).find("better, expected no member of this name"), std::string::npos);
  EXPECT_NE(changed("/verdicts/0/answer", "yes").find("verdicts[0].answer"), std::string::npos);
  EXPECT_NE(changed("/tolerance", 1e9).find("tolerance, expected at most 1"), std::string::npos);
  EXPECT_NE(changed("/keys", -1).find("keys, expected at least 0"), std::string::npos);
  EXPECT_NE(changed("/center/0", "0").find("center[0], expected number"), std::string::npos);
  EXPECT_NE(changed("/certificates", "there").find("certificates"), std::string::npos);
  EXPECT_NE(message(R"({"schema": 1, "schema": 2})").find("schema twice"), std::string::npos);
  EXPECT_NE(message(std::string(100, '[')).find("deeper nesting"), std::string::npos);
  std::string brackets = "[";
  for (int i = 0; i < 4000; ++i) brackets += "{},";
  EXPECT_NE(message(brackets + "{}]").find("more lists and objects"), std::string::npos);
  std::string commas = "[";
  for (int i = 0; i < 8000; ++i) commas += "1,";
  EXPECT_NE(message(commas + "1]").find("more values"), std::string::npos);
}

TEST(Result, ArgumentsAreFoundByTheirRole) {
  Json json = select_result();
  json["inputs"]["arguments"] = {{{"role", "keys"}, {"name", "k.npy"}},
                                 {{"role", "gain"}, {"name", "g.npy"}}};
  const Result got = result(json);
  EXPECT_EQ(got.argument("gain"), "g.npy");
  EXPECT_EQ(got.argument("bias"), "");
}

// Against the definition of the hash in docs/certificates.md.
TEST(Result, ArraysAreIdentifiedByTheirHash) {
  const InputArray array = describe_array("keys", {4, 2}, keys);
  EXPECT_EQ(array.sha256.size(), 64u);
  Json json = select_result();
  json["inputs"]["arrays"] = {{{"role", "keys"}, {"shape", {4, 2}}, {"sha256", array.sha256}}};
  EXPECT_NO_THROW(result(json).expect_arrays({array}, "x"));
  std::vector<double> others = keys;
  others[7] += 1e-15;
  EXPECT_THROW(result(json).expect_arrays({describe_array("keys", {4, 2}, others)}, "x"), Error);
  EXPECT_THROW(result(json).expect_arrays({describe_array("keys", {2, 4}, keys)}, "x"), Error);
}

}  // namespace
}  // namespace normscope::verify
