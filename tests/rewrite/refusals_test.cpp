#include <fstream>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>

#include "rewrite/copy.hpp"
#include "support/data.hpp"
#include "support/files.hpp"

namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;
using test::Copy;
using test::error_of;
using test::fixture;
using test::Rewritten;
using test::Scratch;

Plan plan_of(const files::Checkpoint& source, const Options& options = {.fold_gains = true}) {
  return make_plan(source, models::describe(source), options);
}

Plan plan_of(const std::string& name, const Options& options = {.fold_gains = true}) {
  return plan_of(files::Checkpoint(fixture(name)), options);
}

testing::AssertionResult mentions(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not mention \"" << part << "\"";
}

TEST(RewriteRefusals, NormsThatFeedTheResidualKeepTheirGains) {
  const Plan bert = plan_of("bert");
  EXPECT_TRUE(mentions(bert.norms[0].reason, "post-norm"));
  EXPECT_EQ(bert.norms[4].fold, Fold::gain_and_bias) << "the last one feeds the head alone";
  EXPECT_TRUE(mentions(bert.norms[5].reason, "not all of what reads it is known"));
  EXPECT_TRUE(mentions(plan_of("gemma2").norms[1].reason, "sandwich"));
  EXPECT_TRUE(mentions(plan_of("albert").norms[1].reason, "shared"));
  EXPECT_TRUE(mentions(plan_of("qwen3").norms[1].reason, "queries and keys"));
  EXPECT_TRUE(mentions(plan_of("llama4").norms[4].reason, "not all of what reads it is known"));
}

/// Names of the gains of norms that something else than a linear map with a stored weight reads, as running
/// the fixture showed.
std::set<std::string> gains_read_otherwise(const std::string& name) {
  std::set<std::string> result;
  const auto truth = nlohmann::json::parse(test::text_of(fixture(name) / "truth.json"));
  for (const auto& norm : truth.at("norms")) {
    if (!norm.at("gain").is_string()) continue;
    for (const auto& reader : norm.at("readers")) {
      const bool is_map =
          reader.at("op") == "linear" && reader.at("weight").is_string() && !reader.contains("kernel");
      if (!is_map) result.insert(norm.at("gain").get<std::string>());
    }
  }
  return result;
}

// In every architecture that is described, a fold is refused, with a reason, wherever something reads the
// norm that the fold would not reach.
TEST(RewriteRefusals, NormsThatNotOnlyLinearMapsReadKeepTheirGains) {
  std::size_t architectures = 0;
  std::size_t left = 0;
  for (const std::string& name : test::fixtures_with("truth.json")) {
    const std::set<std::string> otherwise = gains_read_otherwise(name);
    const files::Checkpoint source(fixture(name));
    const models::Model model = models::describe(source);
    const Plan plan = make_plan(source, model, {.fold_gains = true});
    ++architectures;
    for (const NormPlan& norm : plan.norms) {
      const models::Norm& described = model.norms[norm.norm];
      if (norm.fold == Fold::gain || norm.fold == Fold::gain_and_bias) {
        EXPECT_TRUE(described.readers_known) << name << " " << described.name;
        EXPECT_FALSE(otherwise.contains(described.gain->selector())) << name << " " << described.name;
      } else {
        EXPECT_FALSE(norm.reason.empty()) << name << " " << described.name;
        ++left;
      }
    }
  }
  EXPECT_GT(architectures, 100U);
  EXPECT_GT(left, 200U);
}

TEST(RewriteRefusals, WhatIsSharedIsLeft) {
  const Scratch scratch;
  Copy copy(fixture("phi"));
  // A head without a bias: the norm's bias stays, divided by the gain, unless a gain is zero.
  const Plan whole = plan_of("phi");
  EXPECT_EQ(whole.norms.back().fold, Fold::gain_and_bias);
  Copy stable(fixture("stablelm"));
  stable.tensors.at("model.norm.weight").values[3] = 0.0;
  const Plan zero = plan_of(stable.open(scratch / "zero"));
  EXPECT_EQ(zero.norms.back().fold, Fold::nothing);
  EXPECT_TRUE(mentions(zero.norms.back().reason, "gain at feature 3 is 0"));
  stable.tensors.at("model.norm.weight").values[3] = 1e-42;
  stable.tensors.at("model.norm.bias").values[3] = 1.0;
  EXPECT_TRUE(
      mentions(plan_of(stable.open(scratch / "tiny")).norms.back().reason, "leaves the range of F32"));
}

TEST(RewriteRefusals, StreamsThatKeepTheirMean) {
  const Options center{.center = true};
  const auto reason = [&](const std::string& name) { return plan_of(name, center).streams.at(0).reason; };
  EXPECT_TRUE(mentions(reason("llama"), "RMSNorm"));
  EXPECT_TRUE(mentions(reason("bert"), "post-norm"));
  EXPECT_TRUE(mentions(reason("bloom"), "post-norm"));
  EXPECT_TRUE(mentions(reason("gpt2"), "untying"));
  // Its head is a copy of the table, and untying it would be refused.
  EXPECT_TRUE(mentions(reason("nanogpt"), "the head cannot be untied: without a config.json"));
  EXPECT_FALSE(mentions(reason("nanogpt"), "untying"));
  EXPECT_TRUE(mentions(reason("whisper"), "not all of what writes"));
  EXPECT_TRUE(plan_of("gpt2", {.center = true, .untie = true}).streams.at(0).centered);
}

// transformers shares their blocks by the field that ties the head.
TEST(RewriteRefusals, AHeadThatIsTiedWithLayers) {
  for (const char* const name : {"zamba", "zamba2"}) {
    const std::string found = error_of(ErrorCode::Unsupported, [&] {
      static_cast<void>(plan_of(name, {.fold_gains = true, .untie = true}));
    });
    EXPECT_TRUE(mentions(found, "untying would also separate the layers that share")) << name;
  }
}

TEST(RewriteRefusals, ModelsWhoseWiringIsNotKnown) {
  const Scratch scratch;
  const auto refusal = [](const files::Checkpoint& source, const Options& options = {.fold_gains = true}) {
    return error_of(ErrorCode::Unsupported, [&] { static_cast<void>(plan_of(source, options)); });
  };
  Copy stranger(fixture("llama"));
  const std::string type = "\"llama\"";
  stranger.config.replace(stranger.config.find(type, stranger.config.find("model_type")), type.size(),
                          "\"stranger\"");
  EXPECT_TRUE(mentions(refusal(stranger.open(scratch / "type")),
                       "not modelled: unknown architecture (model_type stranger)"));
  Copy nameless(fixture("llama"));
  nameless.config = "{}";
  while (nameless.tensors.size() > 2) nameless.tensors.erase(nameless.tensors.begin());
  EXPECT_TRUE(mentions(refusal(nameless.open(scratch / "names")), "not modelled: unknown architecture"));
  Copy copy(fixture("gpt2"));
  copy.tensors.erase("transformer.h.1.mlp.c_fc.bias");
  EXPECT_TRUE(mentions(refusal(copy.open(scratch / "missing")), "is missing"));
  EXPECT_TRUE(mentions(refusal(files::Checkpoint(fixture("t5")), {.untie = true}), "tied"));
  EXPECT_TRUE(mentions(refusal(files::Checkpoint(fixture("nanogpt")), {.untie = true}), "config.json"));
  EXPECT_TRUE(mentions(refusal(files::Checkpoint(fixture("gpt_neox")), {.untie = true}), "no tied head"));
  Copy unknown(fixture("llama"));
  unknown.config.insert(1, "\"some_new_field\": 3, ");
  EXPECT_TRUE(mentions(refusal(unknown.open(scratch / "field")), "not modelled: some_new_field: 3"));
}

TEST(RewriteRefusals, ValuesThatTheDtypeCannotHold) {
  const Scratch scratch;
  Copy copy(fixture("llama"));
  copy.stored_as(Dtype::F16);
  copy.tensors.at("model.layers.0.input_layernorm.weight").values[2] = 6e4;
  copy.tensors.at("model.layers.0.self_attn.q_proj.weight").values[2] = 8.0;
  const auto write_to = [&](const files::Checkpoint& source) {
    return error_of(ErrorCode::Unsupported,
                    [&] { const Rewritten rewritten(source, {.fold_gains = true}, scratch / "out"); });
  };
  EXPECT_TRUE(mentions(write_to(copy.open(scratch / "large")), "8 becomes 480000, which F16 cannot hold"));
  copy.tensors.at("model.layers.0.self_attn.q_proj.weight").values[2] =
      std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(mentions(write_to(copy.open(scratch / "nan")), "expected finite weights"));
  EXPECT_FALSE(fs::exists(scratch / "out"));
  std::size_t left = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(scratch.folder())) ++left;
  EXPECT_EQ(left, 2U) << "the two inputs";
}

TEST(RewriteRefusals, OutputsThatAreNotFree) {
  const Scratch scratch;
  const files::Checkpoint source = Copy(fixture("llama")).open(scratch / "in");
  const auto refusal = [&](const fs::path& to) {
    return error_of(ErrorCode::Argument,
                    [&] { const Rewritten rewritten(source, {.fold_gains = true}, to); });
  };
  EXPECT_TRUE(mentions(refusal(scratch / "in"), "is the input"));
  EXPECT_TRUE(mentions(refusal(scratch / "in/../in/"), "is the input"));
  EXPECT_TRUE(mentions(refusal(scratch / "in/inside"), "is in the input"));
  fs::create_directory(scratch / "full");
  std::ofstream(scratch / "full/a") << "a";
  EXPECT_TRUE(mentions(refusal(scratch / "full"), "exists"));
  fs::create_directory(scratch / "empty");
  const Rewritten rewritten(source, {.fold_gains = true}, scratch / "empty");
  EXPECT_TRUE(fs::exists(scratch / "empty/model.safetensors"));
}

TEST(RewriteRefusals, NothingIsLeftOfWhatIsCancelled) {
  const Scratch scratch;
  const files::Checkpoint source = Copy(fixture("gpt2")).open(scratch / "in", 2);
  const models::Model model = models::describe(source);
  const Plan plan = make_plan(source, model, {.fold_gains = true});
  for (const std::size_t after : {std::size_t{0}, std::size_t{5}, std::size_t{20}}) {
    std::size_t calls = 0;
    const Progress progress([&](auto, auto, auto) { return calls++ < after; });
    error_of(ErrorCode::Cancelled,
             [&] { static_cast<void>(write(source, model, plan, scratch / "out", 1, progress)); });
    EXPECT_FALSE(fs::exists(scratch / "out"));
    std::size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(scratch.folder())) ++entries;
    EXPECT_EQ(entries, 1U);
  }
}

TEST(RewriteRealCheckpoints, AreRewrittenOrRefusedByName) {
  for (const char* name :
       {"checkpoints/gpt_nano_sort.safetensors", "checkpoints/llama2c_stories260K.safetensors",
        "checkpoints/gpt_by_hand.safetensors"}) {
    NORMSCOPE_NEED_DATA(path, name);
    const Scratch scratch;
    const Rewritten rewritten(files::Checkpoint(path), {.fold_gains = true}, scratch / "out.safetensors");
    EXPECT_FALSE(rewritten.result.certificates.empty()) << name;
    for (const Certificate& certificate : rewritten.result.certificates) {
      EXPECT_LE(certificate.observed_as_stored, certificate.relative_bound) << certificate.tensor;
      EXPECT_LE(certificate.relative_bound, 1.001 * certificate.rounding) << certificate.tensor;
    }
  }
  NORMSCOPE_NEED_DATA(incomplete, "checkpoints/gpt2_small_without_mlp");
  EXPECT_TRUE(mentions(
      error_of(ErrorCode::Unsupported, [&] { static_cast<void>(plan_of(files::Checkpoint(incomplete))); }),
      "is incomplete"));
}

}  // namespace
}  // namespace normscope::rewrite
