// Compares descriptions with what each configuration field changes in the running model
// (scripts/model_oracle/fields.py).

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/norm_spec.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>
#include <normscope/models/model.hpp>

#include "support/fixtures.hpp"
#include "support/scratch.hpp"

namespace normscope::models {
namespace {

using Json = nlohmann::json;
using Row = std::vector<double>;

// What the running model's norms read at a position: `rows` of fields.py.
Row input_row(std::size_t width, std::size_t position) {
  Row row(width);
  for (std::size_t j = 0; j < width; ++j) {
    row[j] = 0.02 * std::sin(0.7 * static_cast<double>(position * width + j) + 0.2);
  }
  return row;
}

Row normed(const NormSpec& spec, const Row& row) {
  const std::size_t size = spec.block_width();
  Row result(row.size());
  for (std::size_t first = 0; first < row.size(); first += size) {
    double mean = 0.0;
    for (std::size_t j = first; spec.centers() && j < first + size; ++j) {
      mean += row[j] / static_cast<double>(size);
    }
    double squares = 0.0;
    for (std::size_t j = first; j < first + size; ++j) squares += (row[j] - mean) * (row[j] - mean);
    const double length = std::sqrt(squares / spec.squared_radius() + spec.eps);
    for (std::size_t j = first; j < first + size; ++j) {
      result[j] = spec.gain_at(j) * (row[j] - mean) / length + spec.bias_at(j);
    }
  }
  return result;
}

Row mapped(const files::Checkpoint& checkpoint, const Linear& map, const Row& row) {
  const Row weight = read_weight(checkpoint, map, 0, map.out);
  const Row bias = read_bias(checkpoint, map);
  Row result(map.out);
  for (std::size_t j = 0; j < map.out; ++j) {
    result[j] = bias.empty() ? 0.0 : bias[j];
    for (std::size_t i = 0; i < map.in; ++i) result[j] += weight[j * map.in + i] * row[i];
  }
  return result;
}

// The query or key of one head, behind the norm that it may pass.
Row query_or_key(const Model& model, const files::Checkpoint& checkpoint, const Linear& part,
                 const Row& row) {
  const Norm* const own = own_norm(model, part);
  if (own == nullptr) return mapped(checkpoint, part, row);
  const NormSpec spec = read_norm(checkpoint, *own);
  if (spec.width == part.out) return normed(spec, mapped(checkpoint, part, row));
  const auto whole = std::find_if(own->writers.begin(), own->writers.end(),
                                  [&](const Linear& map) { return map.covers(part); });
  const Row all = normed(spec, mapped(checkpoint, *whole, row));
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(part.first_out - whole->first_out);
  return {first, first + static_cast<std::ptrdiff_t>(part.out)};
}

double dot(const Row& a, const Row& b, std::size_t from, std::size_t to) {
  double sum = 0.0;
  for (std::size_t j = from; j < to; ++j) sum += a[j] * b[j];
  return sum;
}

// The score of a key for a query; empty where the query does not see it.
std::optional<double> score(const Head& head, Row query, std::size_t at, Row key, std::size_t of,
                            bool causal) {
  if ((causal && of > at) || (head.window && at >= of + *head.window)) return {};
  std::size_t turned = 0;
  double factor = 1.0;
  if (head.rotary) {
    rotate(*head.rotary, at, query);
    rotate(*head.rotary, of, key);
    turned = head.rotary->dims;
    factor = head.rotary->score_factor;
  }
  const double value =
      head.scale * (factor * dot(query, key, 0, turned) + dot(query, key, turned, query.size()));
  return head.soft_cap == 0.0 ? value : head.soft_cap * std::tanh(value / head.soft_cap);
}

bool agree(double value, double expected, double size) {
  return std::abs(value - expected) <= 1e-3 * size + 1e-6;
}

double largest(const Json& numbers) {
  double size = 0.0;
  for (const Json& value : numbers) {
    if (value.is_number()) size = std::max(size, std::abs(value.get<double>()));
  }
  return size;
}

// A description against the numbers of one run.
class Compared {
 public:
  Compared(const files::Checkpoint& checkpoint, const Model& model, const Json& truth)
      : checkpoint_(checkpoint), model_(model) {
    norms(truth.at("norms"));
    scores(truth.at("scores"));
    logits(truth);
  }

  std::vector<std::string> differences;
  std::set<std::string> refused;  // queries' tensors of heads that have no bound, "logits"

 private:
  void norms(const Json& truth) {
    for (const auto& [name, expected] : truth.items()) {
      const auto norm = std::find_if(model_.norms.begin(), model_.norms.end(),
                                     [&, key = name](const Norm& one) { return one.name == key; });
      if (norm == model_.norms.end()) {
        differences.push_back(fmt::format("norm {} is not described", name));
        continue;
      }
      const double value = normed(read_norm(checkpoint_, *norm), input_row(norm->width, 0))[0];
      if (!agree(value, expected.get<double>(), std::abs(expected.get<double>()))) {
        differences.push_back(
            fmt::format("norm {} gives {}, expected {}", name, value, expected.get<double>()));
      }
    }
  }

  void scores(const Json& truth) {
    for (const auto& [query, numbers] : truth.items()) {
      const Head* last = nullptr;
      for (const Head& head : model_.heads) {
        if (head.query && head.query->weight.tensor == query) last = &head;
      }
      if (last == nullptr) continue;
      if (!why_no_scores(*last).empty()) {
        refused.insert(query);
        continue;
      }
      const Norm* const norm = find_norm(model_, last->norm);
      const bool listed = !last->rotary || !last->rotary->frequencies.empty() || last->rotary->dims == 0;
      if (norm == nullptr || last->between || !last->later_norms.empty() || !listed) continue;
      head_scores(*last, read_norm(checkpoint_, *norm), query, numbers);
    }
  }

  void head_scores(const Head& head, const NormSpec& norm, const std::string& query, const Json& numbers) {
    const std::size_t at = numbers.size() - 2;
    const bool causal = numbers.back().is_null();
    if (!causal && (head.rotary || head.window)) {
      differences.push_back(fmt::format("{}: a later key is seen", query));
    }
    const auto part = [&](const Linear& map, std::size_t position) {
      return query_or_key(model_, checkpoint_, map, normed(norm, input_row(norm.width, position)));
    };
    const double size = largest(numbers);
    for (std::size_t of = 0; of < numbers.size(); ++of) {
      const std::optional<double> value =
          score(head, part(*head.query, at), at, part(*head.key, of), of, causal);
      const bool same = value.has_value() == numbers[of].is_number() &&
                        (!value || agree(*value, numbers[of].get<double>(), size));
      if (same) continue;
      differences.push_back(fmt::format("{}: score of key {} is {}, expected {}", query, of,
                                        value ? fmt::format("{}", *value) : "hidden", numbers[of].dump()));
      return;
    }
  }

  void logits(const Json& truth) {
    const Json& numbers = truth.at("logits");
    if (!model_.vocabulary || !model_.vocabulary->unembedding) return;
    const Vocabulary& vocabulary = *model_.vocabulary;
    if (!vocabulary.not_modelled.empty()) {
      refused.insert("logits");
      return;
    }
    const Norm* const norm = find_norm(model_, vocabulary.final_norm);
    if (norm == nullptr) return;
    const Row row =
        normed(read_norm(checkpoint_, *norm), input_row(norm->width, truth.at("last").get<std::size_t>()));
    const Row values = mapped(checkpoint_, *vocabulary.unembedding, row);
    const double size = largest(numbers);
    for (std::size_t token = 0; token < numbers.size(); ++token) {
      double logit = vocabulary.logit_scale * values[token];
      if (vocabulary.soft_cap != 0.0) logit = vocabulary.soft_cap * std::tanh(logit / vocabulary.soft_cap);
      if (agree(logit, numbers[token].get<double>(), size)) continue;
      differences.push_back(
          fmt::format("logit {} is {}, expected {}", token, logit, numbers[token].get<double>()));
      return;
    }
  }

  const files::Checkpoint& checkpoint_;
  const Model& model_;
};

// Fields that change nothing in transformers 5.24, but in other versions, other programs, or other
// implementations of attention.
const std::set<std::string> used_elsewhere = {
    "partial_rotary_factor",
    "rope_theta",
    "rope_parameters",
    "original_max_position_embeddings",
    "use_bidirectional_attention",
    "logit_scale",
    "use_long_context",
    "alibi",
    "_remove_final_layer_norm",
    "attention_layers",  // written beside attention_types, from which the class makes it
    "full_attention",
    "sliding_attention"};

// A fixture whose configuration is changed field by field.
class Fields {
 public:
  explicit Fields(const std::string& name)
      : folder_(scratch_ / "model"), original_(read(test::fixture(name) / "config.json")) {
    std::filesystem::create_directory(folder_);
    std::filesystem::create_symlink(test::fixture(name) / "model.safetensors", folder_ / "model.safetensors");
    const Json truth = read(test::fixture(name) / "fields.json");
    const Json& base = truth.at("base");
    unchanged_ = compare(original_, base, "the fixture");
    for (const char* part : {"same", "stream"}) {
      for (const auto& [field, values] : truth.at(part).items()) {
        for (const Json& value : values) {
          const std::set<std::string> refused = compare(changed(field, value), base, place(field, value));
          if (part == std::string("same") && refused != unchanged_) refuses(refused, field, value);
        }
      }
    }
    for (const Json& entry : truth.at("changed")) {
      Json expected = base;
      for (const char* fact : {"norms", "scores", "logits"}) {
        if (!entry.contains(fact)) continue;
        if (entry.at(fact).is_object()) {
          expected[fact].update(entry.at(fact));
        } else {
          expected[fact] = entry.at(fact);
        }
      }
      const auto field = entry.at("field").get<std::string>();
      compare(changed(field, entry.at("value")), expected, place(field, entry.at("value")));
    }
  }

  std::vector<std::string> differences;

 private:
  static Json read(const std::filesystem::path& path) {
    std::ifstream file(path);
    return Json::parse(file);
  }
  static std::string place(const std::string& field, const Json& value) {
    return value.is_null() ? "without " + field : field + " = " + value.dump();
  }

  [[nodiscard]] Json changed(const std::string& field, const Json& value) const {
    Json config = original_;
    Json* section = &config;
    std::string rest = field;
    for (std::size_t slash = rest.find('/'); slash != std::string::npos; slash = rest.find('/')) {
      section = &section->at(rest.substr(0, slash));
      rest = rest.substr(slash + 1);
    }
    if (value.is_null()) {
      section->erase(rest);
    } else {
      (*section)[rest] = value;
    }
    return config;
  }

  // Adds what differs. Returns what is refused.
  std::set<std::string> compare(const Json& config, const Json& expected, const std::string& what) {
    std::ofstream(folder_ / "config.json") << config.dump();
    try {
      const files::Checkpoint checkpoint(folder_);
      const Model model = describe(checkpoint);
      const Compared found(checkpoint, model, expected);
      for (const std::string& difference : found.differences) {
        differences.push_back(fmt::format("{}: {}", what, difference));
      }
      return found.refused;
    } catch (const Error& error) {
      differences.push_back(fmt::format("{}: {}", what, error.what()));
      return {};
    }
  }

  // A field of another class may be refused, and one that other versions or programs use.
  void refuses(const std::set<std::string>& refused, const std::string& field, const Json& value) {
    const std::string last = field.substr(field.rfind('/') + 1);
    Json section = original_;
    if (const std::size_t slash = field.find('/'); slash != std::string::npos) {
      section = original_.at(field.substr(0, slash));
    }
    if (!section.contains(last) || used_elsewhere.contains(last)) return;
    differences.push_back(fmt::format("{}: changes nothing, but not modelled: {}", place(field, value),
                                      fmt::join(refused, ", ")));
  }

  const test::Scratch scratch_;
  const std::filesystem::path folder_;
  const Json original_;
  std::set<std::string> unchanged_;
};

class FieldsOracle : public testing::TestWithParam<std::string> {};

TEST_P(FieldsOracle, ChangeInTheDescriptionWhatTheyChangeInTheRunningModel) {
  const Fields fields(GetParam());
  EXPECT_TRUE(fields.differences.empty()) << fmt::format("{}", fmt::join(fields.differences, "\n"));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, FieldsOracle, testing::ValuesIn(test::fixtures_with("fields.json")),
                         [](const auto& instance) { return instance.param; });

Json read_config(const std::string& name) {
  std::ifstream stored(test::fixture(name) / "config.json");
  return Json::parse(stored);
}

/// The fixture with another value of a field.
Model described_with(const std::string& name, const char* field, const Json& value) {
  const test::Scratch scratch;
  std::filesystem::create_symlink(test::fixture(name) / "model.safetensors", scratch / "model.safetensors");
  Json config = read_config(name);
  config[field] = value;
  std::ofstream(scratch / "config.json") << config.dump();
  return describe(files::Checkpoint(scratch / ""));
}

// Fields of published files that their classes do not read.
TEST(FieldsOfPublishedFiles, ThatNoClassReadsRefuseNothing) {
  const std::vector<std::tuple<const char*, const char*, Json>> cases = {
      {"gpt2", "n_special", 0},                  // gpt2-medium
      {"gpt2", "predict_special_tokens", true},  // gpt2-medium
      {"bert", "sbert_ce_default_activation_function",
       "torch.nn.modules.linear.Identity"},  // ms-marco-MiniLM
      {"bert", "sentence_transformers", {{"version", "4.1.0"}}},
      {"bert", "_num_labels", 9},                           // dslim/bert-base-NER
      {"bart", "save_step", 58},                            // distilbart-cnn
      {"deberta", "padding_idx", 0},                        // deberta-base
      {"blenderbot", "layernorm_variant", "prelayernorm"},  // blenderbot-400M-distill
      {"cohere", "model_max_length", 131072},               // c4ai-command-r-v01
      {"phi3", "full_attn_mod", 1},                         // Phi-4-mini-instruct
      {"phi3", "interpolate_factor", 1},
      {"phi3", "lm_head_bias", false},
      {"mamba", "rms_norm", true},  // mamba-130m-hf
      {"mamba", "fused_add_norm", true},
      {"nomic_bert", "prenorm", false},  // nomic-embed-text-v1.5
      {"nomic_bert", "activation_function", "swiglu"},
      {"wav2vec2", "no_mask_time_overlap", false},         // wav2vec2-large-xlsr-53
      {"swin", "path_norm", true},                         // swin-tiny-patch4-window7-224
      {"segformer", "downsampling_rates", {1, 4, 8, 16}},  // segformer-b0-finetuned-ade-512-512
      {"xlm", "word_predict", 0.15},                       // xlm-mlm-en-2048
      {"umt5", "scalable_attention", true},                // umt5-small
      {"lfm2", "use_pos_enc", true},                       // LFM2-1.2B
  };
  for (const auto& [name, field, value] : cases) {
    const Model model = described_with(name, field, value);
    EXPECT_EQ(model.not_modelled.find(field), std::string::npos) << model.not_modelled;
    for (const Head& head : model.heads) EXPECT_EQ(head.not_modelled.find(field), std::string::npos) << name;
    if (model.vocabulary) {
      EXPECT_EQ(model.vocabulary->not_modelled.find(field), std::string::npos) << name;
    }
  }
  // Other values of some would say something else.
  EXPECT_NE(described_with("mamba", "rms_norm", false).not_modelled, "");
  EXPECT_NE(described_with("nomic_bert", "prenorm", true).not_modelled, "");
  EXPECT_NE(described_with("phi3", "full_attn_mod", 2).heads.at(0).not_modelled, "");
}

// Their classes pool at these tokens, drop their embeddings or make inputs of the decoder.
TEST(FieldsOfTokens, MayChangeWhatOtherThanLanguageModelsCompute) {
  const auto changes = [](const std::string& name, const char* field) {
    const test::Scratch scratch;
    const files::Checkpoint before(test::fixture(name));
    std::filesystem::create_symlink(test::fixture(name) / "model.safetensors", scratch / "model.safetensors");
    Json config = read_config(name);
    config[field] = 7;
    std::ofstream(scratch / "config.json") << config.dump();
    const files::Checkpoint after(scratch / "");
    return changed_fields(before, describe(before), after, describe(after)).size();
  };
  for (const auto& [name, field] : {std::pair{"esm", "mask_token_id"},
                                    {"clip_text", "eos_token_id"},
                                    {"bart", "eos_token_id"},
                                    {"bart", "decoder_start_token_id"},
                                    {"qwen2_vl", "vision_start_token_id"}}) {
    EXPECT_EQ(changes(name, field), 1u) << name << ": " << field;
  }
  for (const char* const name : {"llama", "gpt2", "mamba", "mixtral", "qwen2_vl"}) {
    EXPECT_EQ(changes(name, "eos_token_id"), 0u) << name;
  }
}

// The class makes no norms of queries and keys then, and passes over those of the file.
TEST(FieldsOfNorms, StoredNormsThatAreSwitchedOffAreNotModelled) {
  for (const char* const name : {"glm4_moe", "cohere_qk_norm"}) {
    for (const Head& head : described_with(name, "use_qk_norm", false).heads) {
      EXPECT_NE(head.not_modelled.find("self_attn.k_norm.weight"), std::string::npos) << head.not_modelled;
    }
  }
}

// Nor where no field states them and the class's default is to make none.
TEST(FieldsOfNorms, StoredNormsThatNoFieldSwitchesOnAreNotModelled) {
  for (const auto& [name, field, norm] :
       {std::tuple{"glm4_moe", "use_qk_norm", "self_attn.q_norm"},
        {"cohere_qk_norm", "use_qk_norm", "self_attn.q_norm"},
        {"phi_qk_norm", "qk_layernorm", "self_attn.q_layernorm"},
        {"stablelm_parallel", "qk_layernorm", "self_attn.q_layernorm.norms.0"}}) {
    EXPECT_EQ(described_with(name, field, true).not_modelled, "") << name;
    EXPECT_EQ(described_with(name, field, nullptr).not_modelled,
              fmt::format("tensor \"model.layers.0.{}.weight\" without {}", norm, field));
  }
  // A class that has no such field makes none whatever it says.
  EXPECT_NE(described_with("qwen3", "model_type", "qwen2").not_modelled, "");
  EXPECT_NE(described_with("cohere_qk_norm", "model_type", "cohere2").not_modelled, "");
  // Persimmon makes them unless it is told not to.
  EXPECT_EQ(described_with("persimmon", "qk_layernorm", nullptr).not_modelled, "");
}

// The class then has attention and MLP side by side, and no norm between them.
TEST(FieldsOfNorms, FalconsBranchesAreParallelUnlessAFieldSaysOtherwise) {
  EXPECT_EQ(described_with("falcon_alibi", "parallel_attn", false).decoder->not_modelled, "");
  const Model model = described_with("falcon_alibi", "parallel_attn", nullptr);
  EXPECT_NE(model.decoder->not_modelled.find("h.0.post_attention_layernorm."), std::string::npos)
      << model.decoder->not_modelled;
}

TEST(FieldsOfActivations, OfGemmaAreThoseThatItsClassReads) {
  const auto activation = [](const char* name, const char* field, const char* value) {
    return described_with(name, field, value).decoder->activation;
  };
  EXPECT_EQ(activation("gemma", "hidden_act", "gelu"), Activation::gelu_tanh);
  EXPECT_EQ(activation("gemma", "hidden_act", "relu"), Activation::relu);
  EXPECT_EQ(activation("gemma", "hidden_activation", "relu"), Activation::gelu_tanh);
  EXPECT_EQ(activation("gemma2", "hidden_act", "relu"), Activation::gelu_tanh);
  EXPECT_EQ(activation("gemma2", "hidden_activation", "gelu"), Activation::gelu);
}

// Any class reads one of them alone.
TEST(FieldsOfActivations, ThatContradictEachOtherAreNotModelled) {
  const Model model = described_with("llama", "hidden_activation", "relu");
  EXPECT_EQ(model.decoder->activation, std::nullopt);
  EXPECT_EQ(model.decoder->not_modelled, "hidden_activation: relu beside hidden_act: silu");
  EXPECT_EQ(described_with("llama", "hidden_activation", "silu").decoder->not_modelled, "");
}

// The class has a scaling of its own.
TEST(FieldsOfPositions, OfApertusHaveToBeStated) {
  for (const char* const name : {"apertus", "apertus1p5"}) {
    const Model model = described_with(name, "rope_parameters", nullptr);
    EXPECT_EQ(model.heads.at(0).not_modelled, "rope_parameters, which are not stated") << name;
  }
}

// Some classes normalize weights of experts unless they are told not to, some always.
TEST(FieldsOfExperts, DefaultsAndIgnoredFieldsOfTheirWeightsAreTheClasss) {
  const auto normalizes = [](const char* name, const Json& value) {
    return described_with(name, "norm_topk_prob", value).decoder->routing->normalized;
  };
  EXPECT_TRUE(normalizes("mellum", nullptr));
  EXPECT_FALSE(normalizes("mellum", false));
  EXPECT_FALSE(normalizes("qwen3_moe", nullptr));
  EXPECT_TRUE(normalizes("qwen3_moe", true));
  for (const char* const name : {"qwen3_vl_moe", "minimax_m2"}) EXPECT_TRUE(normalizes(name, false)) << name;
}

// Its class makes one layer.
TEST(FieldsOfLayers, APassOverMoreLayersThanAreStatedIsNotModelled) {
  EXPECT_EQ(described_with("llama", "num_hidden_layers", 1).decoder->not_modelled,
            "more layers than the configuration states");
  EXPECT_EQ(described_with("llama", "num_hidden_layers", 2).decoder->not_modelled, "");
}

// Nor does it make biases.
TEST(FieldsOfBiases, StoredBiasesThatAreSwitchedOffAreNotModelled) {
  for (const auto& [name, field] : {std::pair{"llama_biased", "attention_bias"},
                                    {"llama_biased", "mlp_bias"},
                                    {"starcoder2", "use_bias"},
                                    {"glm4_moe", "attention_bias"}}) {
    const Model model = described_with(name, field, false);
    EXPECT_EQ(model.not_modelled, fmt::format("{}: false, beside biases", field)) << name;
    EXPECT_EQ(described_with(name, field, true).not_modelled, "") << name;
  }
  // It is about queries, keys and values alone.
  EXPECT_EQ(described_with("recurrent_gemma", "attention_bias", false).not_modelled, "");
}

// Where the class makes none unless it is told to.
TEST(FieldsOfBiases, StoredBiasesThatNoFieldSwitchesOnAreNotModelled) {
  for (const auto& [name, field, tensor] :
       {std::tuple{"llama_biased", "attention_bias", "model.layers.0.self_attn.q_proj.bias"},
        {"llama_biased", "mlp_bias", "model.layers.0.mlp.gate_proj.bias"},
        {"phimoe", "attention_bias", "model.layers.0.self_attn.q_proj.bias"},
        {"phimoe", "lm_head_bias", "lm_head.bias"}}) {
    EXPECT_EQ(described_with(name, field, nullptr).not_modelled,
              fmt::format("tensor \"{}\" without {}", tensor, field));
  }
  // Others make them unless they are told not to.
  for (const auto& [name, field] : {std::pair{"starcoder2", "use_bias"},
                                    {"gpt_neox", "attention_bias"},
                                    {"glm4", "attention_bias"},
                                    {"seed_oss", "attention_bias"},
                                    {"qwen2_moe", "qkv_bias"},
                                    {"vit", "qkv_bias"}}) {
    EXPECT_EQ(described_with(name, field, nullptr).not_modelled, "") << name;
  }
}

/// The fixture with one more tensor.
Model with_tensor(const std::string& fixture, const std::string& tensor, std::uint64_t count, float value) {
  const test::Scratch scratch;
  const files::Checkpoint original(test::fixture(fixture));
  std::filesystem::create_symlink(test::fixture(fixture) / "config.json", scratch / "config.json");
  std::filesystem::create_symlink(test::fixture(fixture) / "model.safetensors", scratch / "a.safetensors");
  const std::vector<float> values(count, value);
  const std::vector<files::NewTensor> added = {
      {tensor, Dtype::F32, {count}, std::as_bytes(std::span(values))}};
  files::write_safetensors(scratch / "b.safetensors", added, {});
  Json map = {{tensor, "b.safetensors"}};
  for (const files::Tensor& stored : original.tensors()) map[std::string(stored.name)] = "a.safetensors";
  std::ofstream(scratch / "model.safetensors.index.json")
      << Json({{"metadata", Json::object()}, {"weight_map", map}}).dump();
  return describe(files::Checkpoint(scratch / ""));
}

/// Likewise a bias of the map or norm `name`, of ones.
Model with_bias(const std::string& fixture, const std::string& name, float value = 1.0F) {
  const files::Checkpoint original(test::fixture(fixture));
  return with_tensor(fixture, name + ".bias", original.find(name + ".weight")->shape[0], value);
}

// As it lacks a norm.
TEST(FieldsOfNorms, ANormOfQueriesThatTheClassLacksIsNotModelled) {
  const std::string norm = "model.layers.0.self_attn.q_norm.weight";
  for (const char* const name : {"llama", "qwen2_moe", "glm4", "granite", "gpt_oss", "mixtral", "gemma",
                                 "gemma2", "starcoder2", "nemotron"}) {
    const std::uint64_t width = describe(files::Checkpoint(test::fixture(name))).heads.at(0).head_dim;
    EXPECT_EQ(with_tensor(name, norm, width, 2.0F).not_modelled, fmt::format("tensor \"{}\"", norm)) << name;
  }
  // OLMo's norms have no gains.
  EXPECT_EQ(with_tensor("olmo", norm, 8, 2.0F).heads.at(0).not_modelled, fmt::format("tensor \"{}\"", norm));
}

// Its class lacks the bias, so that it has no effect.
TEST(FieldsOfBiases, OneMoreBiasIsNotModelled) {
  for (const auto& [name, map] : {std::pair{"mistral", "model.layers.0.self_attn.q_proj"},
                                  {"mistral", "model.layers.1.mlp.down_proj"},
                                  {"qwen2", "model.layers.0.mlp.up_proj"},
                                  {"phi3", "model.layers.0.self_attn.qkv_proj"},
                                  {"exaone4", "model.layers.0.self_attn.o_proj"},
                                  {"cohere", "model.layers.0.input_layernorm"},
                                  {"mpt", "transformer.blocks.0.norm_1"},
                                  {"t5_encoder", "encoder.block.0.layer.0.SelfAttention.q"},
                                  {"deepseek_v3", "model.layers.0.mlp.gate_proj"},
                                  {"gpt_neo", "transformer.h.0.attn.attention.q_proj"},
                                  {"gpt_neo", "transformer.h.1.attn.attention.k_proj"},
                                  {"whisper", "model.encoder.layers.0.self_attn.k_proj"},
                                  {"whisper", "model.decoder.layers.1.encoder_attn.k_proj"},
                                  {"beit", "beit.encoder.layer.0.attention.attention.key"},
                                  {"reformer", "reformer.encoder.layers.0.attention.self_attention.key"},
                                  {"reformer", "reformer.encoder.layers.0.attention.output.dense"},
                                  {"llama", "lm_head"}}) {
    const std::string found = with_bias(name, map).not_modelled;
    EXPECT_TRUE(found.starts_with(fmt::format("tensor \"{}.bias\"", map))) << name << ": " << found;
  }
  // These state the field.
  for (const auto& [name, field, map] :
       {std::tuple{"llama", "attention_bias", "model.layers.0.self_attn.o_proj"},
        {"modernbert", "norm_bias", "model.final_norm"},
        {"mamba2", "use_bias", "backbone.layers.0.mixer.in_proj"},
        {"dinov3_vit", "key_bias", "layer.0.attention.k_proj"},
        {"aimv2_vision", "qkv_bias", "encoder.layers.0.attention.out_proj"},
        {"aimv2_vision", "mlp_bias", "encoder.layers.0.ffn.down_proj"},
        {"falcon_7b", "bias", "transformer.h.0.mlp.dense_h_to_4h"}}) {
    EXPECT_EQ(with_bias(name, map).not_modelled, fmt::format("{}: false, beside biases", field)) << name;
  }
  EXPECT_NE(described_with("dinov3_vit", "query_bias", false).not_modelled, "");
  EXPECT_EQ(described_with("dinov3_vit", "query_bias", nullptr).not_modelled, "");
  // A bias of zeros, as GPTQ's writers store it, changes nothing.
  for (const char* const name : {"llama", "mistral"}) {
    EXPECT_EQ(with_bias(name, "model.layers.0.self_attn.q_proj", 0.0F).not_modelled, "") << name;
  }
}

}  // namespace
}  // namespace normscope::models
