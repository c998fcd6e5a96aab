#include <normscope/rewrite/compare.hpp>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rewrite/copy.hpp"

namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;
using test::Copy;
using test::fixture;
using test::Scratch;

/// GPT-2 in the names and shapes of TransformerLens: a matrix [in, out] for each head.
Copy in_transformer_lens(const Copy& gpt2, const models::Model& model) {
  Copy result = gpt2;
  result.tensors.clear();
  const std::size_t width = model.width;
  const std::size_t heads = model.heads_per_layer;
  const std::size_t dim = width / heads;
  const auto move = [&](const std::string& from, const std::string& to) {
    result.tensors[to] = gpt2.tensors.at("transformer." + from);
  };
  move("wte.weight", "embed.W_E");
  move("wpe.weight", "pos_embed.W_pos");
  const auto& table = gpt2.tensors.at("transformer.wte.weight");
  const std::size_t tokens = table.shape[0];
  Copy::Values head{table.dtype, {width, tokens}, std::vector<double>(width * tokens)};
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t j = 0; j < width; ++j) head.values[j * tokens + t] = table.values[t * width + j];
  }
  result.tensors["unembed.W_U"] = head;
  move("ln_f.weight", "ln_final.w");
  move("ln_f.bias", "ln_final.b");
  for (int layer = 0; layer < model.layers; ++layer) {
    const std::string h = "h." + std::to_string(layer) + ".";
    const std::string block = "blocks." + std::to_string(layer) + ".";
    for (const char* const n : {"1", "2"}) {
      move(h + "ln_" + n + ".weight", block + "ln" + n + ".w");
      move(h + "ln_" + n + ".bias", block + "ln" + n + ".b");
    }
    const auto& fused = gpt2.tensors.at("transformer." + h + "attn.c_attn.weight");
    const auto& bias = gpt2.tensors.at("transformer." + h + "attn.c_attn.bias");
    for (std::size_t part = 0; part < 3; ++part) {
      const std::string letter(1, "QKV"[part]);
      Copy::Values weights{fused.dtype, {heads, width, dim}, {}};
      for (std::size_t at = 0; at < heads * width * dim; ++at) {
        const std::size_t column = part * width + at / (width * dim) * dim + at % dim;
        weights.values.push_back(fused.values[at / dim % width * 3 * width + column]);
      }
      result.tensors[block + "attn.W_" + letter] = weights;
      const auto begin = bias.values.begin() + static_cast<std::ptrdiff_t>(part * width);
      result.tensors[block + "attn.b_" + letter] = {
          bias.dtype, {heads, dim}, {begin, begin + static_cast<std::ptrdiff_t>(width)}};
    }
    move(h + "attn.c_proj.weight", block + "attn.W_O");
    result.tensors[block + "attn.W_O"].shape = {heads, dim, width};
    move(h + "attn.c_proj.bias", block + "attn.b_O");
    move(h + "mlp.c_fc.weight", block + "mlp.W_in");
    move(h + "mlp.c_fc.bias", block + "mlp.b_in");
    move(h + "mlp.c_proj.weight", block + "mlp.W_out");
    move(h + "mlp.c_proj.bias", block + "mlp.b_out");
  }
  return result;
}

/// Folds a norm into a map [heads][in, out], whose mean over the inputs is subtracted then.
void fold(Copy& copy, const std::string& norm, const std::string& weight, const std::string& bias) {
  const std::vector<double> gain = copy.tensors.at(norm + ".w").values;
  const std::vector<double> shift = copy.tensors.at(norm + ".b").values;
  auto& map = copy.tensors.at(weight);
  const std::size_t width = gain.size();
  const std::size_t out = map.shape.back();
  const std::size_t heads = map.values.size() / width / out;
  auto& constant = copy.tensors[bias];
  if (constant.values.empty()) constant = {map.dtype, {out}, std::vector<double>(out)};
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t i = 0; i < out; ++i) {
      double mean = 0.0;
      for (std::size_t j = 0; j < width; ++j) {
        double& value = map.values[(h * width + j) * out + i];
        constant.values[h * out + i] += value * shift[j];
        value *= gain[j];
        mean += value / static_cast<double>(width);
      }
      for (std::size_t j = 0; j < width; ++j) map.values[(h * width + j) * out + i] -= mean;
    }
  }
}

class CompareLens : public testing::Test {
 protected:
  CompareLens() : copy_(in_transformer_lens(Copy(fixture("gpt2")), models::describe(original_))) {}

  void fold_all() {
    for (int layer = 0; layer < models::describe(original_).layers; ++layer) {
      const std::string block = "blocks." + std::to_string(layer) + ".";
      for (const char* const part : {"Q", "K", "V"}) {
        fold(copy_, block + "ln1", block + "attn.W_" + part, block + "attn.b_" + part);
      }
      fold(copy_, block + "ln2", block + "mlp.W_in", block + "mlp.b_in");
    }
    fold(copy_, "ln_final", "unembed.W_U", "unembed.b_U");
    std::erase_if(copy_.tensors, [](const auto& tensor) {
      return tensor.first.find(".ln") != std::string::npos || tensor.first.starts_with("ln_final");
    });
  }

  Comparison compared() {
    const files::Checkpoint after = copy_.open(scratch_ / "after");
    return compare(original_, models::describe(original_), after, models::describe(after));
  }

  const Scratch scratch_{};
  const files::Checkpoint original_{fixture("gpt2")};
  Copy copy_;
};

TEST_F(CompareLens, OtherNamesAreTheSameModel) { EXPECT_EQ(compared().agreement, Agreement::same); }

TEST_F(CompareLens, FoldedNormsNeedNoTensors) {
  fold_all();
  EXPECT_EQ(compared().agreement, Agreement::equivalent);
  // A folded gain is lost in one column.
  copy_.tensors.at("blocks.0.mlp.W_in").values[5] *= 1.01;
  EXPECT_EQ(compared().agreement, Agreement::different);
}

TEST_F(CompareLens, AHeadOfValuesThatIsZeroIsADifference) {
  auto& values = copy_.tensors.at("blocks.0.attn.W_V").values;
  std::fill_n(values.begin(), values.size() / 2, 0.0);
  EXPECT_EQ(compared().agreement, Agreement::different);
}

TEST_F(CompareLens, ACentredUnembeddingShiftsAllLogitsAlike) {
  auto& head = copy_.tensors.at("unembed.W_U");
  const std::size_t tokens = head.shape[1];
  for (std::size_t j = 0; j < head.shape[0]; ++j) {
    double mean = 0.0;
    for (std::size_t t = 0; t < tokens; ++t) mean += head.values[j * tokens + t];
    for (std::size_t t = 0; t < tokens; ++t) {
      head.values[j * tokens + t] -= mean / static_cast<double>(tokens);
    }
  }
  const Comparison comparison = compared();
  EXPECT_EQ(comparison.agreement, Agreement::equivalent);
  EXPECT_TRUE(std::any_of(comparison.findings.begin(), comparison.findings.end(),
                          [](const ComparisonFinding& finding) { return finding.kind == "shifted_logits"; }));
  head.values[3] += 0.1;
  EXPECT_EQ(compared().agreement, Agreement::different);
}

bool is_proved(const Comparison& comparison) {
  return comparison.agreement == Agreement::same || comparison.agreement == Agreement::equivalent;
}

/// A checkpoint and the states that TransformerLens itself made of it (scripts/model_oracle/lens_states.py).
class LensStates : public testing::TestWithParam<const char*> {
 protected:
  Copy state(const std::string& name) const {
    Copy copy(folder_ / (name + ".safetensors"));
    copy.config = original_.config_text().value_or("");
    // Masks, which tests/cli/compare_test.py changes.
    std::erase_if(copy.tensors, [](const auto& tensor) { return tensor.second.dtype == Dtype::BOOL; });
    return copy;
  }

  /// The states that there are: a bridge's parameters are not folded.
  std::vector<std::string> states() const {
    return fs::exists(folder_ / "folded.safetensors") ? std::vector<std::string>{"plain", "folded"}
                                                      : std::vector<std::string>{"plain"};
  }

  Comparison compared(const Copy& copy) {
    const files::Checkpoint after = copy.open(scratch_ / std::to_string(++copies_));
    return compare(original_, models::describe(original_), after, models::describe(after));
  }

  const Scratch scratch_{};
  const fs::path folder_ = fixture(std::string("lens_") + GetParam());
  const files::Checkpoint original_{folder_ / "model.safetensors"};
  int copies_ = 0;
};

TEST_P(LensStates, AreTheSameModel) {
  const Comparison plain = compared(state("plain"));
  // Gemma's tokens are multiplied by the root of the width, which TransformerLens stores rounded.
  EXPECT_EQ(plain.agreement, GetParam() == std::string("gemma") ? Agreement::equivalent : Agreement::same);
  if (states().size() > 1) {
    EXPECT_EQ(compared(state("folded")).agreement, Agreement::equivalent);
  }
}

TEST_P(LensStates, TheOrderOfBothFilesDoesNotMatter) {
  const files::Checkpoint before = state(states().back()).open(scratch_ / "before");
  EXPECT_TRUE(is_proved(compare(before, models::describe(before), original_, models::describe(original_))));
}

TEST_P(LensStates, WithoutAConfigurationNothingElseIsMissing) {
  for (const std::string& name : states()) {
    Copy copy = state(name);
    copy.config = "{}";
    const Comparison comparison = compared(copy);
    EXPECT_EQ(comparison.agreement, Agreement::undecided);
    EXPECT_EQ(comparison.not_compared.size(), 1U) << comparison.not_compared.back();
    for (const NormComparison& norm : comparison.norms) EXPECT_NE(norm.agreement, Agreement::different);
  }
}

TEST_P(LensStates, WithoutAConfigurationTheKindOfFoldedNormsIsNoDifference) {
  const files::Checkpoint before = state("plain").open(scratch_ / "before");
  Copy copy = state(states().back());
  copy.config = "{}";
  const files::Checkpoint after = copy.open(scratch_ / "after");
  EXPECT_EQ(compare(before, models::describe(before), after, models::describe(after)).agreement,
            Agreement::undecided);
}

TEST_P(LensStates, HiddenPositionsHaveTheLowestScore) {
  Copy copy = state("plain");
  const std::string name = "blocks.0.attn.IGNORE";
  if (!copy.tensors.contains(name)) return;
  for (const double score : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    copy.tensors.at(name).values = {score};
    EXPECT_FALSE(is_proved(compared(copy))) << score;
  }
  copy.tensors.at(name).values = {-1e5};  // of its older versions
  EXPECT_TRUE(is_proved(compared(copy)));
}

TEST_P(LensStates, EveryTensorCounts) {
  for (const std::string& name : states()) {
    const Copy whole = state(name);
    for (const auto& [tensor, unchanged] : whole.tensors) {
      if (unchanged.shape.empty()) continue;
      Copy copy = whole;
      for (double& value : copy.tensors.at(tensor).values)
        value = 1.03 * value + 0.01 * static_cast<double>(&value - copy.tensors.at(tensor).values.data());
      EXPECT_FALSE(is_proved(compared(copy))) << tensor;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LensStates,
                         testing::Values("qwen2", "gemma", "phi", "gpt_neox", "gpt_neox_sequential", "gptj",
                                         "gpt_neo", "opt", "stablelm"));

}  // namespace
}  // namespace normscope::rewrite
