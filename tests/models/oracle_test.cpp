// Compares descriptions of tiny models with what running them showed (scripts/model_oracle/README.md).

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "models/oracle.hpp"
#include "support/fixtures.hpp"

namespace normscope::models {
namespace {

// Cases whose description is not yet right. An entry that has become right fails the test: remove it.
const std::set<std::string> not_described = {};

class Oracle : public testing::TestWithParam<std::string> {};

TEST_P(Oracle, DescribesWhatRunningTheModelShows) {
  const std::vector<std::string> differences = test::oracle_differences(GetParam());
  if (not_described.contains(GetParam())) {
    EXPECT_FALSE(differences.empty()) << GetParam() << " is described: remove it from not_described";
  } else {
    EXPECT_TRUE(differences.empty()) << fmt::format("{}", fmt::join(differences, "\n"));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Oracle, testing::ValuesIn(test::fixtures_with("truth.json")),
                         [](const auto& instance) { return instance.param; });

// The files of torch.nn's stacks do not show norm_first and the number of heads; a configuration may.
TEST(OracleOfTorchModules, AreDescribedByWhatAConfigurationStates) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"torch_encoder", R"({"nhead": 3, "norm_first": false, "layer_norm_eps": 3e-4})"},
      {"torch_decoder", R"({"nhead": 3, "norm_first": false})"},
      {"torch_decoder_norm_first", R"({"nhead": 3, "norm_first": true})"},
      {"torch_transformer", R"({"nhead": 3, "norm_first": false, "num_encoder_layers": 2})"}};
  for (const auto& [name, config] : cases) {
    EXPECT_EQ(test::oracle_differences(name, config), std::vector<std::string>{}) << name;
  }
  const std::vector<std::string> wrong =
      test::oracle_differences("torch_decoder", R"({"nhead": 3, "norm_first": true})");
  EXPECT_FALSE(wrong.empty()) << "norm_first was not read";
}

TEST(OracleList, NamesOnlyCasesThatExist) {
  const std::vector<std::string> cases = test::fixtures_with("truth.json");
  for (const std::string& name : not_described) {
    EXPECT_EQ(std::count(cases.begin(), cases.end(), name), 1) << name;
  }
}

}  // namespace
}  // namespace normscope::models
