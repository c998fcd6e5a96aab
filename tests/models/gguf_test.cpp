#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "files/gguf_files.hpp"
#include "models/synthetic.hpp"
#include "support/files.hpp"
#include "support/fixtures.hpp"
#include "support/scratch.hpp"

namespace normscope::models {
namespace {

namespace fs = std::filesystem;
using files::Checkpoint;
using test::GgufFile;

constexpr double kTheta = 100.0;

/// A model of one layer of width 4 in llama.cpp's names, with `add` entries and tensors more.
GgufFile gguf_model(const std::string& architecture, void (*add)(GgufFile&) = nullptr) {
  GgufFile file;
  file.text("general.architecture", architecture).text("general.name", "x").number("general.file_type", 0);
  file.text("tokenizer.chat_template", "eps 0.5 heads3");
  file.number(architecture + ".block_count", 1).number(architecture + ".attention.head_count", 2);
  file.number(architecture + ".rope.dimension_count", 2).number(architecture + ".attention.head_count_kv", 1);
  file.real(architecture + ".attention.layer_norm_rms_epsilon", 1e-6f);
  file.real(architecture + ".rope.freq_base", static_cast<float>(kTheta));
  if (add != nullptr) add(file);
  file.floats("token_embd.weight", {5, 4}).floats("output_norm.weight", {4});
  file.floats("blk.0.attn_norm.weight", {4}).floats("blk.0.ffn_norm.weight", {4});
  file.floats("blk.0.attn_q.weight", {8, 4}).floats("blk.0.attn_k.weight", {4, 4});
  file.floats("blk.0.attn_v.weight", {4, 4}).floats("blk.0.attn_output.weight", {4, 8});
  return file;
}

GgufFile with_mlp(GgufFile file) {
  file.floats("blk.0.ffn_gate.weight", {6, 4}).floats("blk.0.ffn_up.weight", {6, 4});
  file.floats("blk.0.ffn_down.weight", {4, 6});
  return file;
}

Model described(const GgufFile& file) {
  const test::Scratch scratch;
  test::put(scratch / "m.gguf", file.file());
  return describe(Checkpoint(scratch / "m.gguf"));
}

std::string scores_not_modelled(const std::string& architecture, void (*add)(GgufFile&)) {
  const Model model = described(with_mlp(gguf_model(architecture, add)));
  return model.heads.empty() ? "no heads" : model.heads[0].not_modelled;
}

void expect_same_head(const Head& head, const Head& expected, bool no_context) {
  EXPECT_EQ(head.layer, expected.layer);
  EXPECT_EQ(head.head, expected.head);
  EXPECT_EQ(head.key_value_head, expected.key_value_head);
  EXPECT_EQ(head.head_dim, expected.head_dim);
  EXPECT_EQ(head.scale, expected.scale);
  EXPECT_EQ(head.not_modelled, expected.not_modelled);
  EXPECT_EQ(static_cast<float>(head.clip), static_cast<float>(expected.clip));
  EXPECT_EQ(head.alibi, expected.alibi);
  ASSERT_EQ(head.rotary.has_value(), expected.rotary.has_value());
  if (head.rotary) {
    EXPECT_EQ(head.rotary->dims, expected.rotary->dims);
    EXPECT_EQ(head.rotary->frequencies, expected.rotary->frequencies);
    if (!no_context) {
      EXPECT_EQ(head.rotary->context, expected.rotary->context);
    }
  }
}

/// Gemma's gains are w and were 1 + w in float32.
void expect_near(const std::vector<double>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1.2e-7);
}

/// What a converted file does not state or orders in another way.
struct Lossy {
  bool pairs_are_neighbours = false;  ///< rows of queries and keys are reordered
  bool no_scale = false;              ///< of scores
  bool no_kinds = false;              ///< of layers: the one after the first has no window in the original
  bool fused_by_head = false;         ///< the original's queries, keys and values are mixed per head
  bool no_distance = false;           ///< beyond which relative positions are the same
  bool no_context = false;            ///< the converter writes 2048 positions
  bool no_eps = false;                ///< the converter writes the published one
};

/// The file made by scripts/gguf_oracle from the fixture of that name describes the same model.
void expect_twin(const std::string& name, const std::string& architecture, const Lossy& lossy = {}) {
  const fs::path folder = fs::path(NORMSCOPE_SOURCE_DIR) / "tests/models";
  const Checkpoint file(folder / "gguf" / (name + ".gguf"));
  const Checkpoint twin(test::fixture(name));
  const Model model = describe(file);
  const Model expected = describe(twin);
  EXPECT_EQ(model.architecture, architecture);
  EXPECT_TRUE(model.evidence.starts_with("metadata model_type ")) << model.evidence;
  EXPECT_EQ(model.layers, expected.layers);
  EXPECT_EQ(model.width, expected.width);
  EXPECT_EQ(model.parameters, expected.parameters);
  EXPECT_TRUE(model.missing.empty());
  ASSERT_EQ(model.norms.size(), expected.norms.size());
  for (std::size_t i = 0; i < expected.norms.size(); ++i) {
    const Norm& norm = model.norms[i];
    const Norm& other = expected.norms[i];
    EXPECT_EQ(norm.role, other.role);
    EXPECT_EQ(norm.layer, norm.role == "embedding" ? std::nullopt : other.layer);
    EXPECT_EQ(norm.kind, other.kind);
    EXPECT_EQ(norm.eps, lossy.no_eps ? 1e-5 : other.eps);
    if (norm.role != "attention heads") {  // RWKV's, which llama.cpp takes for granted
      EXPECT_EQ(norm.eps_source, Source::metadata);
    }
    EXPECT_EQ(norm.placement, other.placement);
    EXPECT_EQ(norm.connections_known, other.connections_known);
    expect_near(read_norm(file, norm).gain, read_norm(twin, other).gain);
    EXPECT_EQ(read_norm(file, norm).bias, read_norm(twin, other).bias);
    ASSERT_EQ(norm.readers.size(), other.readers.size());
    for (std::size_t r = 0; r < other.readers.size(); ++r) {
      EXPECT_EQ(norm.readers[r].role, other.readers[r].role);
      EXPECT_EQ(norm.readers[r].out, other.readers[r].out);
      const bool is_reordered = lossy.fused_by_head || lossy.pairs_are_neighbours;
      const std::string& role = other.readers[r].role;
      if (is_reordered && (role == "query" || role == "key" || role == "value")) continue;
      EXPECT_EQ(read_weight(file, norm.readers[r], 0, norm.readers[r].out),
                read_weight(twin, other.readers[r], 0, other.readers[r].out));
    }
  }
  ASSERT_EQ(model.heads.size(), expected.heads.size());
  for (std::size_t i = 0; i < expected.heads.size(); ++i) {
    Head head = expected.heads[i];
    if (lossy.no_scale) head.scale = 1.0 / std::sqrt(static_cast<double>(head.head_dim));
    if (lossy.no_kinds && head.layer != 0) continue;
    const std::string distance = "; relative_attention_max_distance: 5";
    if (lossy.no_distance) {
      ASSERT_NE(head.not_modelled.find(distance), std::string::npos);
      head.not_modelled.erase(head.not_modelled.find(distance), distance.size());
    }
    expect_same_head(model.heads[i], head, lossy.no_context);
    if (lossy.fused_by_head) {
      EXPECT_EQ(read_weight(file, *model.heads[i].query, 0, head.head_dim),
                read_weight(twin, *head.query, 0, head.head_dim));
      EXPECT_EQ(read_weight(file, *model.heads[i].key, 0, head.head_dim),
                read_weight(twin, *head.key, 0, head.head_dim));
    }
  }
  ASSERT_EQ(model.vocabulary.has_value(), expected.vocabulary.has_value());
  if (!model.vocabulary) return;
  EXPECT_EQ(model.vocabulary->size, expected.vocabulary->size);
  EXPECT_EQ(model.vocabulary->tied, expected.vocabulary->tied);
  EXPECT_EQ(model.vocabulary->not_modelled, expected.vocabulary->not_modelled);
}

TEST(GgufModel, Gpt2IsThatOfItsSafetensorsFile) { expect_twin("gpt2", "gguf_gpt2"); }
TEST(GgufModel, LlamaIsThatOfItsSafetensorsFile) {
  expect_twin("llama", "gguf_llama", {.pairs_are_neighbours = true});
}
TEST(GgufModel, MixtralIsThatOfItsSafetensorsFile) {
  expect_twin("mixtral", "gguf_llama", {.pairs_are_neighbours = true});
}
TEST(GgufModel, Qwen2IsThatOfItsSafetensorsFile) { expect_twin("qwen2", "gguf_llama"); }
TEST(GgufModel, Qwen3IsThatOfItsSafetensorsFile) { expect_twin("qwen3", "gguf_llama"); }
TEST(GgufModel, YarnIsThatOfItsSafetensorsFile) { expect_twin("qwen3_yarn", "gguf_llama"); }
TEST(GgufModel, QwenMoeIsThatOfItsSafetensorsFile) {
  expect_twin("qwen2_moe_sparse", "gguf_llama");
  expect_twin("qwen3_moe_sparse", "gguf_llama");
}
TEST(GgufModel, Glm4IsThatOfItsSafetensorsFile) { expect_twin("glm4", "gguf_llama"); }
TEST(GgufModel, Glm45IsThatOfItsSafetensorsFile) { expect_twin("glm4_moe", "gguf_llama"); }
TEST(GgufModel, NemotronIsThatOfItsSafetensorsFile) { expect_twin("nemotron", "gguf_starcoder2"); }
TEST(GgufModel, CommandR7BIsThatOfItsSafetensorsFile) { expect_twin("cohere2_period", "gguf_command_r"); }
TEST(GgufModel, Phi2IsThatOfItsSafetensorsFile) { expect_twin("phi_ungrouped", "gguf_phi2"); }
TEST(GgufModel, OlmoIsThatOfItsSafetensorsFile) {
  expect_twin("olmo", "gguf_olmo", {.pairs_are_neighbours = true});
}
TEST(GgufModel, FalconIsThatOfItsSafetensorsFile) {
  expect_twin("falcon_7b", "gguf_falcon", {.no_context = true});
  expect_twin("falcon_40b", "gguf_falcon", {.fused_by_head = true, .no_context = true});
}
TEST(GgufModel, MptIsThatOfItsSafetensorsFile) { expect_twin("mpt", "gguf_mpt", {.no_eps = true}); }
TEST(GgufModel, SeedOssAndGraniteMoeAreThoseOfTheirSafetensorsFiles) {
  expect_twin("seed_oss", "gguf_llama");
  expect_twin("granitemoe", "gguf_granite", {.pairs_are_neighbours = true});
}
TEST(GgufModel, Olmo3IsThatOfItsSafetensorsFile) { expect_twin("olmo3", "gguf_olmo2"); }
TEST(GgufModel, NomicBertIsThatOfItsSafetensorsFile) { expect_twin("nomic_bert", "gguf_bert"); }
TEST(GgufModel, T5IsThatOfItsSafetensorsFile) {
  expect_twin("t5", "gguf_t5", {.no_distance = true});
  expect_twin("t5_gated", "gguf_t5", {.no_distance = true});
}
TEST(GgufModel, MambaIsThatOfItsSafetensorsFile) {
  expect_twin("mamba", "gguf_mamba");
  expect_twin("mamba2", "gguf_mamba");
}
TEST(GgufModel, RwkvIsThatOfItsSafetensorsFile) {
  for (const char* name : {"rwkv6", "rwkv7"}) {
    expect_twin(name, "gguf_rwkv");
    const Checkpoint file(fs::path(NORMSCOPE_SOURCE_DIR) / fmt::format("tests/models/gguf/{}.gguf", name));
    const Checkpoint twin(test::fixture(name));
    const Model model = describe(file);
    const Model expected = describe(twin);
    ASSERT_EQ(model.others.size(), expected.others.size());
    std::map<std::string, std::vector<const Linear*>> by_role;
    for (const Linear& map : model.others) by_role[map.role].push_back(&map);
    std::map<std::string, std::size_t> next;
    for (const Linear& other : expected.others) {
      const Linear& map = *by_role.at(other.role).at(next[other.role]++);
      ASSERT_EQ(map.out, other.out) << other.weight.selector();
      EXPECT_EQ(read_weight(file, map, 0, map.out), read_weight(twin, other, 0, other.out))
          << other.weight.selector();
    }
    EXPECT_EQ(model.norms[2].role, "attention heads");
    EXPECT_EQ(model.norms[2].groups, 2U);
    EXPECT_EQ(model.norms[2].eps, 64e-5);
  }
}
TEST(GgufModel, GemmaIsThatOfItsSafetensorsFile) { expect_twin("gemma", "gguf_gemma"); }
TEST(GgufModel, Gemma2IsThatOfItsSafetensorsFile) { expect_twin("gemma2", "gguf_gemma", {.no_scale = true}); }
TEST(GgufModel, Gemma3IsThatOfItsSafetensorsFile) {
  expect_twin("gemma3", "gguf_gemma", {.no_scale = true, .no_kinds = true});
}
TEST(GgufModel, Phi3IsThatOfItsSafetensorsFile) { expect_twin("phi3", "gguf_phi3"); }
TEST(GgufModel, StarCoder2IsThatOfItsSafetensorsFile) { expect_twin("starcoder2", "gguf_starcoder2"); }
TEST(GgufModel, GraniteIsThatOfItsSafetensorsFile) {
  expect_twin("granite", "gguf_granite", {.pairs_are_neighbours = true});
}
TEST(GgufModel, Olmo2IsThatOfItsSafetensorsFile) { expect_twin("olmo2", "gguf_olmo2"); }
TEST(GgufModel, CommandRIsThatOfItsSafetensorsFile) { expect_twin("cohere", "gguf_command_r"); }
TEST(GgufModel, StableLmIsThatOfItsSafetensorsFile) { expect_twin("stablelm", "gguf_stablelm"); }
TEST(GgufModel, GptNeoxIsThatOfItsSafetensorsFile) {
  expect_twin("gpt_neox", "gguf_gpt_neox", {.fused_by_head = true});
}
TEST(GgufModel, BloomIsThatOfItsSafetensorsFile) {
  expect_twin("bloom", "gguf_bloom", {.fused_by_head = true});
}

// The map from the latent vector to keys and values is one matrix per head for the keys, transposed, and one
// for the values.
TEST(GgufModel, DeepSeeksLatentMapIsSplit) {
  const Checkpoint file(fs::path(NORMSCOPE_SOURCE_DIR) / "tests/models/gguf/deepseek_v2.gguf");
  const Checkpoint twin(test::fixture("deepseek_v2"));
  const Model model = describe(file);
  const Model expected = describe(twin);
  EXPECT_EQ(model.architecture, "gguf_deepseek2");
  EXPECT_TRUE(model.missing.empty());
  EXPECT_EQ(model.parameters, expected.parameters);
  ASSERT_EQ(model.heads.size(), expected.heads.size());
  for (std::size_t i = 0; i < expected.heads.size(); ++i) {
    expect_same_head(model.heads[i], expected.heads[i], false);
  }
  ASSERT_EQ(model.norms.size(), expected.norms.size());
  for (std::size_t i = 0; i < expected.norms.size(); ++i) {
    const Norm& norm = model.norms[i];
    const Norm& other = expected.norms[i];
    EXPECT_EQ(norm.role, other.role);
    EXPECT_EQ(read_norm(file, norm).gain, read_norm(twin, other).gain);
    if (norm.role != "key and value latent") {
      ASSERT_EQ(norm.readers.size(), other.readers.size());
      continue;
    }
    constexpr std::uint64_t heads = 4, key = 6, value = 5;
    ASSERT_EQ(norm.readers.size(), 2 * heads);
    for (std::uint64_t head = 0; head < heads; ++head) {
      const std::uint64_t row = head * (key + value);
      EXPECT_EQ(read_weight(file, norm.readers[head], 0, key), read_weight(twin, other.readers[0], row, key));
      EXPECT_EQ(read_weight(file, norm.readers[heads + head], 0, value),
                read_weight(twin, other.readers[0], row + key, value));
    }
  }
}

// Gate and input of an expert are rows of one matrix in turn, and two matrices in llama.cpp's names.
TEST(GgufModel, GptOssHasAMatrixForGatesAndOneForInputs) {
  const Checkpoint file(fs::path(NORMSCOPE_SOURCE_DIR) / "tests/models/gguf/gpt_oss.gguf");
  const Checkpoint twin(test::fixture("gpt_oss"));
  const Model model = describe(file);
  const Model expected = describe(twin);
  EXPECT_EQ(model.architecture, "gguf_gpt_oss");
  EXPECT_TRUE(model.missing.empty());
  EXPECT_EQ(model.parameters, expected.parameters);
  ASSERT_EQ(model.heads.size(), expected.heads.size());
  for (std::size_t i = 0; i < expected.heads.size(); ++i) {
    EXPECT_EQ(model.heads[i].window, expected.heads[i].window);
    ASSERT_TRUE(model.heads[i].sink && expected.heads[i].sink);
    EXPECT_EQ(read_number(file, *model.heads[i].sink), read_number(twin, *expected.heads[i].sink));
  }
  ASSERT_EQ(model.norms.size(), expected.norms.size());
  for (std::size_t i = 0; i < expected.norms.size(); ++i) {
    const Norm& norm = model.norms[i];
    const Norm& other = expected.norms[i];
    EXPECT_EQ(norm.role, other.role);
    EXPECT_EQ(norm.eps, other.eps);
    EXPECT_EQ(read_norm(file, norm).gain, read_norm(twin, other).gain);
    if (norm.role != "mlp input") continue;
    ASSERT_EQ(norm.readers.size(), other.readers.size());
    for (std::size_t r = 0; r < other.readers.size(); ++r) {
      EXPECT_EQ(norm.readers[r].role, other.readers[r].role);
      EXPECT_EQ(read_weight(file, norm.readers[r], 0, norm.readers[r].out),
                read_weight(twin, other.readers[r], 0, other.readers[r].out));
      EXPECT_EQ(read_bias(file, norm.readers[r]), read_bias(twin, other.readers[r]));
    }
  }
}

// Row 2j of llama.cpp's queries is row j of the safetensors file's, row 2j + 1 is row j + d/2.
TEST(GgufModel, PairsThatTurnTogetherAreNeighboursInLlamaOnly) {
  const fs::path folder = fs::path(NORMSCOPE_SOURCE_DIR) / "tests/models";
  const Checkpoint file(folder / "gguf/llama.gguf");
  const Checkpoint twin(test::fixture("llama"));
  const Model model = describe(file);
  const Model expected = describe(twin);
  for (std::size_t i = 0; i < expected.heads.size(); ++i) {
    const Head& head = model.heads[i];
    EXPECT_TRUE(head.rotary->interleaved);
    EXPECT_FALSE(expected.heads[i].rotary->interleaved);
    for (std::uint64_t j = 0; j < head.head_dim; ++j) {
      const std::uint64_t row = j % 2 == 0 ? j / 2 : j / 2 + head.head_dim / 2;
      EXPECT_EQ(read_weight(file, *head.query, j, 1), read_weight(twin, *expected.heads[i].query, row, 1));
      EXPECT_EQ(read_weight(file, *head.key, j, 1), read_weight(twin, *expected.heads[i].key, row, 1));
    }
  }
  EXPECT_FALSE(described(with_mlp(gguf_model("qwen2"))).heads[0].rotary->interleaved);
}

TEST(GgufModel, TakesItsConfigurationFromMetadata) {
  const Model model = described(with_mlp(gguf_model("llama")));
  EXPECT_EQ(model.architecture, "gguf_llama");
  ASSERT_EQ(model.norms.size(), 3u);
  EXPECT_EQ(model.norms[0].eps, 1e-6);
  ASSERT_EQ(model.heads.size(), 2u);
  EXPECT_EQ(model.heads[1].not_modelled, "");
  EXPECT_EQ(model.heads[1].head_dim, 4u);
  EXPECT_EQ(model.heads[1].rotary->dims, 2u);
  EXPECT_EQ(model.heads[1].rotary->frequencies, std::vector<double>{1.0});
  ASSERT_TRUE(model.vocabulary);
  EXPECT_TRUE(model.vocabulary->tied);
}

TEST(GgufModel, GemmasGainsAreStoredAsTheyAreUsed) {
  const Model model = described(with_mlp(gguf_model("gemma")));
  EXPECT_EQ(model.norms[0].gain_offset, 0.0);
  EXPECT_EQ(model.norms[0].role, "attention input");
}

TEST(GgufModel, ReadsStackedExperts) {
  GgufFile file = gguf_model("llama", [](GgufFile& more) {
    more.number("llama.expert_count", 2).number("llama.expert_used_count", 1);
  });
  file.floats("blk.0.ffn_gate_inp.weight", {2, 4}).floats("blk.0.ffn_gate_exps.weight", {2, 6, 4});
  file.floats("blk.0.ffn_up_exps.weight", {2, 6, 4}).floats("blk.0.ffn_down_exps.weight", {2, 4, 6});
  const Model model = described(file);
  EXPECT_TRUE(model.missing.empty());
  EXPECT_EQ(model.heads[0].not_modelled, "");
  EXPECT_EQ(test::names(model.norms[1].readers),
            (std::vector<std::string>{
                "router:blk.0.ffn_gate_inp.weight", "mlp gate:blk.0.ffn_gate_exps.weight[0]",
                "mlp in:blk.0.ffn_up_exps.weight[0]", "mlp gate:blk.0.ffn_gate_exps.weight[1]",
                "mlp in:blk.0.ffn_up_exps.weight[1]"}));
}

TEST(GgufModel, DividesRotaryFrequencies) {
  GgufFile file = with_mlp(gguf_model("llama"));
  file.tensor("rope_freqs.weight", {1}, 0, test::le(4.0F));
  EXPECT_EQ(described(file).heads[0].rotary->frequencies, std::vector<double>{0.25});
  for (const float bad : {0.0F, -1.0F}) {
    GgufFile broken = with_mlp(gguf_model("llama"));
    broken.tensor("rope_freqs.weight", {1}, 0, test::le(bad));
    EXPECT_EQ(described(broken).heads[0].not_modelled, "rope_freqs.weight");
  }
  GgufFile longer = with_mlp(gguf_model("llama"));
  longer.floats("rope_freqs.weight", {2});
  EXPECT_EQ(described(longer).heads[0].not_modelled, "rope_freqs.weight");
}

TEST(GgufModel, ScalesLinearlyOrNotAtAll) {
  const auto frequencies = [](void (*add)(GgufFile&)) {
    const Model model = described(with_mlp(gguf_model("llama", add)));
    EXPECT_EQ(model.heads[0].not_modelled, "");
    return model.heads[0].rotary->frequencies;
  };
  EXPECT_EQ(frequencies([](GgufFile& more) {
              more.text("llama.rope.scaling.type", "linear").real("llama.rope.scaling.factor", 4.0F);
            }),
            std::vector<double>{0.25});
  EXPECT_EQ(frequencies([](GgufFile& more) { more.real("llama.rope.scaling.factor", 4.0F); }),
            std::vector<double>{0.25});
  EXPECT_EQ(frequencies([](GgufFile& more) {
              more.text("llama.rope.scaling.type", "none").real("llama.rope.scaling.factor", 4.0F);
            }),
            std::vector<double>{1.0});
}

// Every second layer of Gemma 2, all but every sixth of Gemma 3, and no layer of Qwen: the converter drops
// it.
TEST(GgufModel, HasTheWindowsThatTheFileStates) {
  const fs::path folder = fs::path(NORMSCOPE_SOURCE_DIR) / "tests/models/gguf";
  const auto windows = [&](const std::string& name) {
    std::vector<std::size_t> found;
    for (const Head& head : describe(Checkpoint(folder / (name + ".gguf"))).heads) {
      if (head.head == 0) found.push_back(head.window.value_or(0));
    }
    return found;
  };
  using Windows = std::vector<std::size_t>;
  EXPECT_EQ(windows("gemma2"), (Windows{4, 0}));
  EXPECT_EQ(windows("gemma3"), (Windows{4, 4}));
  EXPECT_EQ(windows("phi3"), (Windows{4, 4}));
  EXPECT_EQ(windows("qwen2"), (Windows{0, 0}));
}

TEST(GgufModel, ReadsTheLayersThatHaveAWindow) {
  const auto window = [](void (*add)(GgufFile&)) {
    return described(with_mlp(gguf_model("gemma3", add))).heads.at(0).window;
  };
  EXPECT_EQ(window([](GgufFile& more) { more.number("gemma3.attention.sliding_window", 3); }), 3U);
  EXPECT_EQ(window([](GgufFile& more) {
              more.number("gemma3.attention.sliding_window", 3);
              more.entry("gemma3.attention.sliding_window_pattern", 9,  // an array of one boolean
                         test::le(std::uint32_t{7}) + test::le(std::uint64_t{1}) + std::string(1, '\0'));
            }),
            std::nullopt);
}

TEST(GgufModel, SaysWhatIsNotModelled) {
  const auto mentions = [](const std::string& text, const std::string& what) {
    EXPECT_NE(text.find(what), std::string::npos) << text;
  };
  mentions(scores_not_modelled("llama", [](GgufFile& more) { more.text("llama.rope.scaling.type", "yarn"); }),
           "rope.scaling.type: yarn");
  mentions(scores_not_modelled("llama",
                               [](GgufFile& more) {
                                 more.text("llama.rope.scaling.type", "yarn");
                                 more.real("llama.rope.scaling.factor", 4.0F);
                                 more.real("llama.rope.scaling.yarn_attn_factor", 2.0F);
                               }),
           "rope.scaling.yarn_attn_factor: 2");
  mentions(scores_not_modelled("llama", [](GgufFile& more) { more.real("llama.attention.clamp_kqv", 8.0F); }),
           "clip_qkv: 8");
  mentions(scores_not_modelled("llama", [](GgufFile& more) { more.real("llama.attention.scale", 0.5F); }),
           "attention_scale: 0.5");
  mentions(scores_not_modelled("llama", [](GgufFile& more) { more.number("llama.new_field", 1); }),
           "new_field: 1");
  mentions(scores_not_modelled("llama", [](GgufFile& more) { more.number("other.field", 1); }),
           "other.field: 1");
  mentions(
      scores_not_modelled("llama", [](GgufFile& more) { more.number("llama.attention.sliding_window", 4); }),
      "sliding_window: 4");
  EXPECT_EQ(scores_not_modelled("llama",
                                [](GgufFile& more) {
                                  more.number("llama.attention.key_length", 4);
                                  more.number("llama.attention.value_length", 4);
                                  more.real("llama.attention.clamp_kqv", 0.0F);
                                }),
            "");
}

TEST(GgufModel, OfAnotherArchitectureHasNormsByNameOnly) {
  const Model model = described(with_mlp(gguf_model("novel")));
  EXPECT_EQ(model.architecture, "unknown");
  ASSERT_EQ(model.norms.size(), 3u);
  EXPECT_EQ(model.norms[0].eps, 1e-6);
  EXPECT_FALSE(model.norms[0].connections_known);
  EXPECT_TRUE(model.heads.empty());
}

}  // namespace
}  // namespace normscope::models
