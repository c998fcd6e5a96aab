#include <set>

#include <gtest/gtest.h>

#include "models/tiny_models.hpp"
#include "support/fixtures.hpp"

namespace normscope::models {
namespace {

using test::names;
using test::norm_named;
using test::notes_mention;
using test::Synthetic;
using Names = std::vector<std::string>;

void expect_complete(const Model& model) {
  EXPECT_TRUE(model.missing.empty()) << model.missing.front();
  for (const Norm& norm : model.norms) EXPECT_TRUE(norm.connections_known) << norm.name;
}

TEST(GptNeox, CutsQueriesOutOfEveryHeadAndLetsTwoNormsReadOneStream) {
  Synthetic neox;
  neox.config(
      R"({"model_type": "gpt_neox", "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2,
                  "use_parallel_residual": true, "layer_norm_eps": 2e-5})");
  neox.add("gpt_neox.embed_in.weight", {11, 8}).add("embed_out.weight", {11, 8});
  neox.norm("gpt_neox.final_layer_norm", 8);
  for (const char* number : {"0", "1"}) {
    const std::string layer = std::string("gpt_neox.layers.") + number + ".";
    neox.norm(layer + "input_layernorm", 8).norm(layer + "post_attention_layernorm", 8);
    neox.linear(layer + "attention.query_key_value", 24, 8).linear(layer + "attention.dense", 8, 8);
    neox.linear(layer + "mlp.dense_h_to_4h", 32, 8).linear(layer + "mlp.dense_4h_to_h", 8, 32);
    neox.add(layer + "attention.masked_bias", {});
  }
  const Model model = neox.describe();
  EXPECT_EQ(model.architecture, "gpt_neox");
  expect_complete(model);
  const Norm& attention = norm_named(model, "gpt_neox.layers.1.input_layernorm");
  const Norm& mlp = norm_named(model, "gpt_neox.layers.1.post_attention_layernorm");
  EXPECT_EQ(attention.eps, 2e-5);
  EXPECT_EQ(names(attention.writers), (Names{"attention out:gpt_neox.layers.0.attention.dense.weight",
                                             "mlp out:gpt_neox.layers.0.mlp.dense_4h_to_h.weight"}));
  EXPECT_EQ(names(mlp.writers), names(attention.writers));
  ASSERT_EQ(attention.readers.size(), 3u);
  EXPECT_EQ(attention.readers[1].role, "key");
  EXPECT_EQ(attention.readers[1].out_indices, (std::vector<std::uint64_t>{4, 5, 6, 7, 16, 17, 18, 19}));
  ASSERT_EQ(model.heads.size(), 4u);
  EXPECT_EQ(model.heads[1].query->first_out, 12u);
  EXPECT_EQ(model.heads[1].key->first_out, 16u);
  EXPECT_EQ(model.heads[1].value->first_out, 20u);
  EXPECT_EQ(model.heads[1].value->out, 4u);
  EXPECT_TRUE(model.heads[1].rotary.has_value());
  EXPECT_FALSE(model.vocabulary->tied);

  neox.config(R"({"model_type": "gpt_neox", "num_attention_heads": 2, "use_parallel_residual": false})");
  EXPECT_EQ(names(norm_named(neox.describe(), "gpt_neox.layers.1.post_attention_layernorm").writers),
            Names{"attention out:gpt_neox.layers.1.attention.dense.weight"});
}

TEST(GptOss, ExpertsShareTheListsOfTheirOutputs) {
  const Model model = describe(files::Checkpoint(test::fixture("gpt_oss")));
  std::set<const std::uint64_t*> lists;
  std::size_t readers = 0;
  for (const Norm& norm : model.norms) {
    for (const Linear& reader : norm.readers) {
      if (reader.out_indices.empty()) continue;
      lists.insert(&*reader.out_indices.begin());
      ++readers;
    }
  }
  EXPECT_GE(readers, 8u);
  EXPECT_EQ(lists.size(), 2u) << "of gates, and of what they multiply";
}

Synthetic opt(bool before) {
  Synthetic opt;
  const std::string decoder = "model.decoder.";
  opt.add(decoder + "embed_tokens.weight", {11, before ? 8u : 4u})
      .add(decoder + "embed_positions.weight", {10, 8});
  if (before) {
    opt.norm(decoder + "final_layer_norm", 8);
  } else {
    opt.add(decoder + "project_in.weight", {8, 4}).add(decoder + "project_out.weight", {4, 8});
  }
  for (const char* number : {"0", "1"}) {
    const std::string layer = decoder + "layers." + number + ".";
    opt.norm(layer + "self_attn_layer_norm", 8).norm(layer + "final_layer_norm", 8);
    for (const char* part : {"q_proj", "k_proj", "v_proj", "out_proj"})
      opt.linear(layer + "self_attn." + part, 8, 8);
    opt.linear(layer + "fc1", 32, 8).linear(layer + "fc2", 8, 32);
  }
  return opt.config(std::string(R"({"model_type": "opt", "hidden_size": 8, "num_attention_heads": 2,
                                    "do_layer_norm_before": )") +
                    (before ? "true}" : "false}"));
}

TEST(Opt, NormalizesBeforeTheBranchAndAtTheEnd) {
  const Model model = opt(true).describe();
  EXPECT_EQ(model.architecture, "opt");
  expect_complete(model);
  ASSERT_EQ(model.norms.size(), 5u);
  EXPECT_EQ(model.norms[4].name, "model.decoder.final_layer_norm");
  EXPECT_EQ(model.norms[0].placement, Placement::pre);
  EXPECT_EQ(names(norm_named(model, "model.decoder.layers.0.final_layer_norm").readers),
            Names{"mlp in:model.decoder.layers.0.fc1.weight"});
  EXPECT_TRUE(model.vocabulary->tied);
  EXPECT_EQ(model.vocabulary->final_norm, "model.decoder.final_layer_norm");
}

TEST(Opt, NormalizesTheSumInItsPostVariantAndProjectsInAndOut) {
  const Model model = opt(false).describe();
  expect_complete(model);
  ASSERT_EQ(model.norms.size(), 4u);
  EXPECT_EQ(model.norms[0].placement, Placement::post);
  EXPECT_EQ(names(model.norms[0].writers),
            (Names{"embedding projection:model.decoder.project_in.weight",
                   "position embedding:model.decoder.embed_positions.weight",
                   "attention out:model.decoder.layers.0.self_attn.out_proj.weight"}));
  EXPECT_EQ(names(model.norms[3].readers), Names{"output projection:model.decoder.project_out.weight"});
  EXPECT_EQ(model.heads[0].norm, "") << "the first attention reads no norm";
  EXPECT_EQ(model.heads[2].norm, "model.decoder.layers.0.final_layer_norm");
  EXPECT_EQ(model.vocabulary->final_norm, "") << "a projection lies between";
  EXPECT_EQ(model.vocabulary->unembedding->in, 4u);
}

Synthetic bert(const std::string& prefix) {
  Synthetic bert;
  bert.add(prefix + "embeddings.word_embeddings.weight", {11, 8});
  bert.add(prefix + "embeddings.position_embeddings.weight", {10, 8});
  bert.add(prefix + "embeddings.token_type_embeddings.weight", {2, 8});
  bert.norm(prefix + "embeddings.LayerNorm", 8).linear(prefix + "pooler.dense", 8, 8);
  bert.add(prefix + "embeddings.position_ids", {1, 10}, Dtype::I64);
  for (const char* number : {"0", "1"}) {
    const std::string layer = prefix + "encoder.layer." + number + ".";
    for (const char* part : {"query", "key", "value"}) bert.linear(layer + "attention.self." + part, 8, 8);
    bert.linear(layer + "attention.output.dense", 8, 8).norm(layer + "attention.output.LayerNorm", 8);
    bert.linear(layer + "intermediate.dense", 32, 8).linear(layer + "output.dense", 8, 32);
    bert.norm(layer + "output.LayerNorm", 8);
  }
  return bert;
}

TEST(Bert, NormalizesSumsOfABranchAndTheNormBefore) {
  Synthetic file = bert("bert.");
  file.linear("cls.predictions.transform.dense", 8, 8).norm("cls.predictions.transform.LayerNorm", 8);
  file.add("cls.predictions.bias", {11}).linear("cls.seq_relationship", 2, 8);
  file.config(
      R"({"model_type": "bert", "hidden_size": 8, "num_attention_heads": 2, "layer_norm_eps": 1e-12})");
  const Model model = file.describe();
  EXPECT_EQ(model.architecture, "bert");
  EXPECT_TRUE(model.missing.empty());
  ASSERT_EQ(model.norms.size(), 6u);
  const Norm& first = norm_named(model, "bert.encoder.layer.0.attention.output.LayerNorm");
  EXPECT_EQ(first.placement, Placement::post);
  EXPECT_EQ(first.writing_norms, Names{"bert.embeddings.LayerNorm"});
  EXPECT_EQ(names(first.writers), Names{"attention out:bert.encoder.layer.0.attention.output.dense.weight"});
  EXPECT_EQ(model.norms[0].readers.size(), 3u);
  EXPECT_EQ(names(norm_named(model, "bert.encoder.layer.1.output.LayerNorm").readers),
            (Names{"pooler:bert.pooler.dense.weight",
                   "prediction transform:cls.predictions.transform.dense.weight"}));
  EXPECT_TRUE(model.norms[4].connections_known);
  EXPECT_FALSE(model.norms[5].connections_known) << "an activation lies before it";
  EXPECT_EQ(model.vocabulary->final_norm, "cls.predictions.transform.LayerNorm");
  EXPECT_EQ(model.vocabulary->unembedding->weight.tensor, "bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(model.vocabulary->unembedding->bias->tensor, "cls.predictions.bias");
}

TEST(Bert, KnowsRobertasHeadAndSentenceModelsWithoutOne) {
  Synthetic roberta = bert("roberta.");
  roberta.linear("lm_head.dense", 8, 8).norm("lm_head.layer_norm", 8).add("lm_head.bias", {11});
  const Model model = roberta.config(R"({"model_type": "roberta", "num_attention_heads": 2})").describe();
  EXPECT_EQ(model.vocabulary->final_norm, "lm_head.layer_norm");
  EXPECT_TRUE(model.vocabulary->tied);

  const Model sentence = bert("").describe();
  EXPECT_EQ(sentence.architecture, "bert");
  EXPECT_EQ(sentence.evidence, "tensor names encoder.layer.*.attention.output.LayerNorm.*");
  EXPECT_FALSE(sentence.vocabulary.has_value());
  EXPECT_EQ(sentence.heads.size(), 0u);
  expect_complete(sentence);
}

TEST(Vit, ReadsPatchesTokensAndClassifier) {
  Synthetic vit;
  vit.add("vit.embeddings.cls_token", {1, 1, 8}).add("vit.embeddings.position_embeddings", {1, 5, 8});
  vit.add("vit.embeddings.patch_embeddings.projection.weight", {8, 3, 2, 2});
  vit.add("vit.embeddings.patch_embeddings.projection.bias", {8});
  const std::string layer = "vit.encoder.layer.0.";
  vit.norm(layer + "layernorm_before", 8).norm(layer + "layernorm_after", 8).norm("vit.layernorm", 8);
  for (const char* part : {"query", "key", "value"}) vit.linear(layer + "attention.attention." + part, 8, 8);
  vit.linear(layer + "attention.output.dense", 8, 8).linear(layer + "intermediate.dense", 32, 8);
  vit.linear(layer + "output.dense", 8, 32).linear("classifier", 10, 8);
  const Model model = vit.config(R"({"model_type": "vit", "num_attention_heads": 2})").describe();
  EXPECT_EQ(model.architecture, "vit");
  expect_complete(model);
  ASSERT_EQ(model.norms[0].writers.size(), 3u);
  EXPECT_EQ(model.norms[0].writers[2].in, 12u);
  EXPECT_EQ(names(model.norms[2].readers), Names{"classifier:classifier.weight"});
  EXPECT_EQ(model.heads.size(), 2u);
}

TEST(TimmVit, ReadsFusedProjections) {
  Synthetic vit;
  vit.add("cls_token", {1, 1, 8}).add("pos_embed", {1, 5, 8}).add("patch_embed.proj.weight", {8, 3, 2, 2});
  vit.norm("blocks.0.norm1", 8).norm("blocks.0.norm2", 8).norm("norm", 8).linear("head", 10, 8);
  vit.linear("blocks.0.attn.qkv", 24, 8).linear("blocks.0.attn.proj", 8, 8);
  vit.linear("blocks.0.mlp.fc1", 32, 8).linear("blocks.0.mlp.fc2", 8, 32);
  const Model model = vit.describe();
  EXPECT_EQ(model.architecture, "timm_vit");
  EXPECT_EQ(model.norms[0].eps, 1e-6);
  expect_complete(model);
  vit.add("blocks.0.ls2.gamma", {8});
  EXPECT_FALSE(norm_named(vit.describe(), "norm").connections_known) << "a scale lies between";
}

// Norms and projections of a Llama-like model of width 8 with 4 heads over 2 key-value heads.
Synthetic llama(const std::string& prefix, bool head_norms, bool biases, bool sandwich) {
  Synthetic llama;
  llama.add(prefix + "embed_tokens.weight", {11, 8}).add(prefix + "norm.weight", {8});
  for (const char* number : {"0", "1"}) {
    const std::string layer = prefix + "layers." + number + ".";
    llama.add(layer + "input_layernorm.weight", {8}).add(layer + "post_attention_layernorm.weight", {8});
    llama.linear(layer + "self_attn.q_proj", 12, 8, biases).linear(layer + "self_attn.k_proj", 6, 8, biases);
    llama.linear(layer + "self_attn.v_proj", 6, 8, biases).linear(layer + "self_attn.o_proj", 8, 12, false);
    llama.linear(layer + "mlp.gate_proj", 20, 8, false).linear(layer + "mlp.up_proj", 20, 8, false);
    llama.linear(layer + "mlp.down_proj", 8, 20, false);
    if (head_norms)
      llama.add(layer + "self_attn.q_norm.weight", {3}).add(layer + "self_attn.k_norm.weight", {3});
    if (sandwich) {
      llama.add(layer + "pre_feedforward_layernorm.weight", {8});
      llama.add(layer + "post_feedforward_layernorm.weight", {8});
    }
  }
  return llama;
}

TEST(Llama, SharesKeyHeadsAmongQueryHeads) {
  Synthetic file = llama("model.", false, true, false);
  file.add("lm_head.weight", {11, 8});
  file.config(R"({"model_type": "qwen2", "hidden_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
                  "num_hidden_layers": 2, "rms_norm_eps": 1e-6, "head_dim": null,
                  "tie_word_embeddings": false})");
  for (const std::size_t shards : {1u, 3u}) {
    const Model model = file.describe(shards);
    EXPECT_EQ(model.architecture, "llama");
    expect_complete(model);
    EXPECT_EQ(model.norms.size(), 5u);
    EXPECT_EQ(model.norms[0].kind, NormKind::rms);
    EXPECT_EQ(model.norms[0].gain_offset, 0.0);
    EXPECT_TRUE(model.norms[0].readers[0].bias.has_value());
    ASSERT_EQ(model.heads.size(), 8u);
    EXPECT_EQ(model.heads[3].head_dim, 3u);
    EXPECT_EQ(model.heads[3].query->first_out, 9u);
    EXPECT_EQ(model.heads[3].key_value_head, 1);
    EXPECT_EQ(model.heads[3].key->first_out, 3u);
    EXPECT_EQ(
        names(norm_named(model, "model.layers.1.post_attention_layernorm").readers),
        (Names{"mlp gate:model.layers.1.mlp.gate_proj.weight", "mlp in:model.layers.1.mlp.up_proj.weight"}));
    EXPECT_FALSE(model.vocabulary->tied);
  }
}

TEST(Llama, TellsHeadsFromTheSizeOfTheirNorm) {
  const Model model = llama("model.", true, false, false)
                          .config(R"({"model_type": "qwen3", "tie_word_embeddings": true})")
                          .describe();
  expect_complete(model);
  EXPECT_EQ(model.heads_per_layer, 4u);
  EXPECT_EQ(model.key_value_heads, 2u);
  const Norm& queries = norm_named(model, "model.layers.0.self_attn.q_norm");
  EXPECT_EQ(queries.role, "query norm");
  EXPECT_EQ(queries.placement, Placement::inside);
  EXPECT_EQ(queries.width, 3u);
  EXPECT_EQ(names(queries.writers), Names{"query:model.layers.0.self_attn.q_proj.weight"});
  EXPECT_EQ(names(norm_named(model, "model.layers.0.post_attention_layernorm").writers),
            Names{"attention out:model.layers.0.self_attn.o_proj.weight"});
  EXPECT_TRUE(model.vocabulary->tied);
}

// Every class reads one field; tools that convert files write others beside it.
TEST(Llama, HasTheEpsThatItsClassReads) {
  const auto described = [](const std::string& fields) {
    return test::tiny_llama()
        .config(R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 1, "head_dim": 16,
                    "rope_theta": 1e4, "tie_word_embeddings": true)" +
                fields + "}")
        .describe();
  };
  const Model both =
      described(R"(, "layer_norm_epsilon": 1e-2, "layer_norm_eps": 1e-3, "rms_norm_eps": 1e-5)");
  EXPECT_EQ(both.norms[0].eps, 1e-5);
  EXPECT_EQ(both.norms[0].eps_source, Source::config);
  EXPECT_EQ(both.heads[0].not_modelled, "");
  EXPECT_TRUE(notes_mention(both, "layer_norm_epsilon: 0.01 changes nothing"));
  EXPECT_TRUE(notes_mention(both, "layer_norm_eps: 0.001 changes nothing"));
  const Model other = described(R"(, "layer_norm_eps": 1e-3)");
  EXPECT_EQ(other.norms[0].eps, 1e-6);
  EXPECT_EQ(other.norms[0].eps_source, Source::assumed);
}

// The layers of another tower have the names of some of the text model's, and other widths.
TEST(Llama, IsFoundBesideAnotherTower) {
  Synthetic file = test::tiny_llama({.prefix = "language_model.model."});
  const std::string audio = "audio_tower.layers.0.";
  file.norm(audio + "self_attn_layer_norm", 6).norm(audio + "final_layer_norm", 6);
  for (const char* map : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
    file.linear(audio + "self_attn." + map, 6, 6);
  }
  file.linear(audio + "fc1", 12, 6).linear(audio + "fc2", 6, 12);
  file.config(R"({"model_type": "voxtral", "text_config": {"model_type": "llama", "hidden_size": 8,
                  "num_attention_heads": 1, "head_dim": 16, "rope_theta": 1e4, "rms_norm_eps": 1e-5}})");
  const Model model = file.describe();
  EXPECT_EQ(model.architecture, "llama");
  EXPECT_EQ(model.heads.size(), 1u);
  EXPECT_EQ(norm_named(model, "language_model.model.layers.0.input_layernorm").width, 8u);
  EXPECT_EQ(norm_named(model, audio + "self_attn_layer_norm").width, 6u);
}

TEST(Gemma, StoresGainsLessOneAndNormalizesWhatBranchesWrite) {
  Synthetic file = llama("model.language_model.", true, false, true);
  file.config(R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 8}})");
  const files::Checkpoint checkpoint = file.open();
  const Model model = describe(checkpoint);
  EXPECT_EQ(model.architecture, "gemma");
  expect_complete(model);
  const std::string layer = "model.language_model.layers.1.";
  const Norm& branch = norm_named(model, layer + "post_attention_layernorm");
  EXPECT_EQ(branch.role, "attention output");
  EXPECT_EQ(branch.placement, Placement::inside);
  EXPECT_EQ(names(branch.writers), Names{"attention out:" + layer + "self_attn.o_proj.weight"});
  const Norm& mlp = norm_named(model, layer + "pre_feedforward_layernorm");
  EXPECT_EQ(mlp.role, "mlp input");
  EXPECT_TRUE(mlp.writers.empty());
  EXPECT_EQ(mlp.writing_norms, Names{layer + "post_attention_layernorm"});
  const double stored = files::read(*checkpoint.find(mlp.gain->tensor))[2];
  EXPECT_EQ(read_norm(checkpoint, mlp).gain[2], stored + 1.0);

  const Model first = llama("model.", false, false, false).config(R"({"model_type": "gemma"})").describe();
  EXPECT_EQ(first.architecture, "gemma");
  EXPECT_EQ(norm_named(first, "model.layers.0.post_attention_layernorm").role, "mlp input");
  EXPECT_EQ(first.norms[0].gain_offset, 1.0);
}

TEST(Llama, WarnsThatGemmaHasTheSameNames) {
  const Model model = llama("model.", false, false, false).describe();
  EXPECT_EQ(model.architecture, "llama");
  EXPECT_TRUE(notes_mention(model, "Gemma 1"));
  EXPECT_EQ(model.missing, Names{"lm_head.weight"});
  EXPECT_FALSE(norm_named(model, "model.norm").connections_known);
}

// Between image tower and text model: a norm of the text's kind, whose eps is the tower's.
TEST(Gemma, NormalizesWhatTheImageTowerGives) {
  Synthetic file = test::tiny_llama({.prefix = "language_model.model."});
  const std::string layer = "language_model.model.layers.0.";
  for (const char* name : {"pre_feedforward_layernorm", "post_feedforward_layernorm"})
    file.add(layer + name + ".weight", {8});
  file.add(layer + "self_attn.q_norm.weight", {16}).add(layer + "self_attn.k_norm.weight", {16});
  file.add("multi_modal_projector.mm_soft_emb_norm.weight", {6});
  file.add("multi_modal_projector.mm_input_projection_weight", {6, 8});
  const Model model =
      file.config(R"({"model_type": "gemma3", "vision_config": {"model_type": "siglip_vision_model",
                      "hidden_size": 6, "layer_norm_eps": 1e-4}, "text_config": {"model_type": "gemma3_text",
                      "hidden_size": 8, "num_attention_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-5,
                      "sliding_window": 4}})")
          .describe();
  const Norm& norm = norm_named(model, "multi_modal_projector.mm_soft_emb_norm");
  EXPECT_EQ(norm.kind, NormKind::rms);
  EXPECT_EQ(norm.gain_offset, 1.0);
  EXPECT_EQ(norm.eps, 1e-4);
  EXPECT_EQ(names(norm.readers), (Names{"projection:multi_modal_projector.mm_input_projection_weight"}));
  EXPECT_EQ(norm_named(model, layer + "input_layernorm").eps, 1e-5);
  EXPECT_EQ(names(norm_named(model, layer + "input_layernorm").writers),
            (Names{"token embedding:language_model.model.embed_tokens.weight"}));
}

}  // namespace
}  // namespace normscope::models
