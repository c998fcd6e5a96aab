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
const std::set<std::string> not_described = {"apertus",
                                             "bamba",
                                             "beit",
                                             "bloom",
                                             "bloom_post_residual",
                                             "codegen",
                                             "convnext",
                                             "convnextv2",
                                             "deepseek_v2",
                                             "deepseek_v2_lite",
                                             "deepseek_v3",
                                             "dinov2",
                                             "dinov2_swiglu",
                                             "exaone4",
                                             "falcon_11b",
                                             "falcon_40b",
                                             "falcon_7b",
                                             "falcon_alibi",
                                             "falcon_mamba",
                                             "glm",
                                             "glm4",
                                             "glm4_moe",
                                             "gpt_bigcode",
                                             "gpt_bigcode_multi_head",
                                             "gpt_neo",
                                             "gpt_oss",
                                             "gptj",
                                             "jamba",
                                             "llama4",
                                             "lucidrains_gpt",
                                             "lucidrains_gpt_rms",
                                             "lucidrains_gpt_scale",
                                             "lucidrains_vit",
                                             "mamba",
                                             "mamba2",
                                             "ministral",
                                             "mixtral",
                                             "mpnet",
                                             "mpt",
                                             "mpt_scaled",
                                             "nanogpt",
                                             "nanogpt_no_bias",
                                             "nemotron",
                                             "olmo",
                                             "olmo2",
                                             "olmo3",
                                             "olmoe",
                                             "persimmon",
                                             "phi",
                                             "phi3",
                                             "phi3_longrope",
                                             "phi_qk_norm",
                                             "phimoe",
                                             "qwen2_moe",
                                             "qwen3_moe",
                                             "recurrent_gemma",
                                             "rwkv",
                                             "seed_oss",
                                             "stablelm_parallel",
                                             "starcoder2",
                                             "swin",
                                             "torch_decoder",
                                             "torch_decoder_norm_first",
                                             "torch_encoder",
                                             "torch_encoder_norm_first",
                                             "torch_transformer",
                                             "transformer_lens",
                                             "wav2vec2",
                                             "wav2vec2_stable"};

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
