// Compares descriptions of tiny models with what running them showed (scripts/model_oracle/README.md).

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "model/oracle.hpp"

namespace normscope::model {
namespace {

// Cases whose description is not yet right. An entry that has become right fails the test: remove it.
const std::set<std::string> not_described = {
    "lucidrains_gpt",    "lucidrains_gpt_rms",       "lucidrains_gpt_scale", "lucidrains_vit",
    "torch_decoder",     "torch_decoder_norm_first", "torch_encoder",        "torch_encoder_norm_first",
    "torch_transformer", "transformer_lens"};

class Oracle : public testing::TestWithParam<std::string> {};

TEST_P(Oracle, DescribesWhatRunningTheModelShows) {
  const std::vector<std::string> differences = test::oracle_differences(GetParam());
  if (not_described.contains(GetParam())) {
    EXPECT_FALSE(differences.empty()) << GetParam() << " is described: remove it from not_described";
  } else {
    EXPECT_TRUE(differences.empty()) << fmt::format("{}", fmt::join(differences, "\n"));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Oracle, testing::ValuesIn(test::oracle_cases()),
                         [](const auto& instance) { return instance.param; });

TEST(OracleList, NamesOnlyCasesThatExist) {
  const std::vector<std::string> cases = test::oracle_cases();
  for (const std::string& name : not_described) {
    EXPECT_EQ(std::count(cases.begin(), cases.end(), name), 1) << name;
  }
}

}  // namespace
}  // namespace normscope::model
