#include <gtest/gtest.h>

#include "models/synthetic.hpp"
#include "support/data.hpp"

namespace normscope::models {
namespace {

using test::names;
using test::norm_named;
using test::notes_mention;
using Names = std::vector<std::string>;

// The description of a real file, of which every norm can be read and all of the configuration is modelled.
Model described(const std::filesystem::path& path) {
  const files::Checkpoint checkpoint(path);
  const Model model = describe(checkpoint);
  for (const Norm& norm : model.norms) validate(read_norm(checkpoint, norm));
  for (const Head& head : model.heads) EXPECT_EQ(head.not_modelled, "");
  EXPECT_EQ(model.vocabulary.value_or(Vocabulary{}).not_modelled, "");
  return model;
}

TEST(RealCheckpoints, Gpt2SmallIsDescribedAroundWhatItLacks) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/gpt2_small_without_mlp");
  const Model model = described(path);
  EXPECT_EQ(model.architecture, "gpt2");
  EXPECT_EQ(model.evidence, "config.json model_type gpt2");
  EXPECT_EQ(model.layers, 12);
  EXPECT_EQ(model.width, 768u);
  EXPECT_EQ(model.heads_per_layer, 12u);
  EXPECT_EQ(model.heads.size(), 144u);
  ASSERT_EQ(model.norms.size(), 25u);
  EXPECT_EQ(model.missing.size(), 25u);
  EXPECT_EQ(model.missing.front(), "wte.weight");
  EXPECT_EQ(model.missing.back(), "h.11.mlp.c_proj.weight");
  EXPECT_FALSE(model.vocabulary.has_value());
  EXPECT_TRUE(model.notes.empty());

  const Norm& first = model.norms[0];
  EXPECT_EQ(first.name, "h.0.ln_1");
  EXPECT_EQ(first.placement, Placement::pre);
  EXPECT_EQ(first.eps_source, Source::config);
  ASSERT_EQ(first.readers.size(), 3u);
  EXPECT_EQ(first.readers[1].role, "key");
  EXPECT_EQ(first.readers[1].layout, Layout::in_out);
  EXPECT_EQ(first.readers[1].first_out, 768u);
  EXPECT_EQ(first.readers[1].stored_out, 2304u);
  EXPECT_FALSE(first.connections_known) << "the token embedding writes it";
  EXPECT_TRUE(model.norms[1].readers.empty());
  EXPECT_EQ(names(model.norms[1].writers), Names{"attention out:h.0.attn.c_proj.weight"});
  EXPECT_EQ(model.heads[13].query->first_out, 64u);
  EXPECT_EQ(model.heads[13].value->first_out, 1600u);
  EXPECT_EQ(model.heads[13].norm, "h.1.ln_1");
}

TEST(RealCheckpoints, Gpt2MediumTakesEpsFromItsMetadata) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/gpt2_medium_ln_bias.safetensors");
  const Model model = described(path);
  EXPECT_EQ(model.architecture, "gpt2");
  EXPECT_EQ(model.layers, 24);
  EXPECT_EQ(model.width, 1024u);
  EXPECT_EQ(model.heads_per_layer, 0u);
  ASSERT_EQ(model.norms.size(), 49u);
  EXPECT_EQ(model.norms[48].name, "transformer.ln_f");
  EXPECT_EQ(model.norms[48].eps, 1e-5);
  EXPECT_EQ(model.norms[48].eps_source, Source::metadata);
  EXPECT_EQ(model.missing.size(), 98u);
  EXPECT_TRUE(notes_mention(model, "number of heads is not known"));
}

TEST(RealCheckpoints, MinGptsMaskIsNoBiasAndItsMatricesAreOutByIn) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/gpt_nano_sort.safetensors");
  const Model model = described(path);
  EXPECT_EQ(model.architecture, "gpt2");
  EXPECT_EQ(model.evidence, "metadata \"config\" model_type gpt-nano");
  EXPECT_EQ(model.layers, 3);
  EXPECT_EQ(model.width, 48u);
  EXPECT_EQ(model.heads_per_layer, 3u);
  EXPECT_EQ(model.norms.size(), 7u);
  EXPECT_EQ(model.heads.size(), 9u);
  EXPECT_EQ(model.parameters, 85'728u);
  EXPECT_TRUE(model.missing.empty());
  for (const Norm& norm : model.norms) {
    EXPECT_TRUE(norm.connections_known) << norm.name;
    for (const Linear& reader : norm.readers)
      EXPECT_EQ(reader.layout, Layout::out_in) << reader.weight.tensor;
  }
  // The output projection is square: only the file's other matrices tell how it is stored.
  EXPECT_EQ(norm_named(model, "transformer.h.0.ln_2").writers[0].layout, Layout::out_in);
  ASSERT_TRUE(model.vocabulary.has_value());
  EXPECT_EQ(model.vocabulary->size, 3u);
  EXPECT_FALSE(model.vocabulary->tied);
  EXPECT_EQ(model.vocabulary->final_norm, "transformer.ln_f");
}

TEST(RealCheckpoints, GainsMayBeCalledGamma) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/gpt_by_hand.safetensors");
  const Model model = described(path);
  EXPECT_EQ(model.architecture, "gpt2");
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.width, 16u);
  ASSERT_EQ(model.norms.size(), 5u);
  EXPECT_EQ(model.norms[0].kind, NormKind::layer);
  EXPECT_EQ(model.norms[0].gain->tensor, "transformer.h.0.ln_1.gamma");
  EXPECT_FALSE(model.norms[0].bias.has_value());
  EXPECT_EQ(model.norms[0].eps_source, Source::assumed);
  EXPECT_TRUE(notes_mention(model, "eps 1e-05 is assumed"));
  EXPECT_TRUE(notes_mention(model, "number of heads is not known"));
  EXPECT_TRUE(model.missing.empty());
  EXPECT_EQ(model.vocabulary->size, 32u);
}

TEST(RealCheckpoints, AlbertsSharedNormsAppearOnceAndReadBothWays) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/rxnmapper_albert");
  const Model model = described(path);
  const std::string layer = "albert.encoder.albert_layer_groups.0.albert_layers.0.";
  EXPECT_EQ(model.architecture, "albert");
  EXPECT_EQ(model.layers, 12);
  EXPECT_EQ(model.width, 256u);
  EXPECT_EQ(model.heads_per_layer, 8u);
  EXPECT_EQ(model.heads.size(), 8u);
  EXPECT_EQ(model.heads[0].norm, "albert.embeddings.LayerNorm");
  ASSERT_TRUE(model.heads[0].between.has_value()) << "the first pass reads the mapped embedding";
  EXPECT_EQ(model.heads[0].between->weight.tensor, "albert.encoder.embedding_hidden_mapping_in.weight");
  EXPECT_EQ(model.heads[7].later_norms, Names{layer + "full_layer_layer_norm"});
  ASSERT_EQ(model.norms.size(), 4u);
  EXPECT_EQ(model.norms[0].width, 128u);
  EXPECT_EQ(model.norms[0].applications, 1);
  EXPECT_EQ(names(model.norms[0].readers),
            Names{"embedding projection:albert.encoder.embedding_hidden_mapping_in.weight"});
  EXPECT_EQ(model.norms[1].applications, 12);
  EXPECT_EQ(model.norms[1].placement, Placement::post);
  EXPECT_EQ(model.norms[1].eps, 1e-12);
  EXPECT_EQ(model.norms[1].writing_norms, Names{layer + "full_layer_layer_norm"});
  EXPECT_EQ(names(model.norms[2].readers),
            (Names{"query:" + layer + "attention.query.weight", "key:" + layer + "attention.key.weight",
                   "value:" + layer + "attention.value.weight", "pooler:albert.pooler.weight",
                   "prediction transform:predictions.dense.weight"}));
  EXPECT_EQ(model.vocabulary->size, 591u);
  EXPECT_EQ(model.vocabulary->final_norm, "predictions.LayerNorm");
  EXPECT_TRUE(model.vocabulary->unembedding->bias.has_value());
  EXPECT_TRUE(model.missing.empty());
  EXPECT_TRUE(model.notes.empty());
}

TEST(RealCheckpoints, GalileosEncoderIsPreLnWithSeparateProjections) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/galileo_nano_encoder");
  const Model model = described(path);
  EXPECT_EQ(model.architecture, "galileo");
  EXPECT_EQ(model.layers, 4);
  EXPECT_EQ(model.width, 128u);
  EXPECT_EQ(model.heads_per_layer, 8u);
  EXPECT_EQ(model.heads.size(), 32u);
  ASSERT_EQ(model.norms.size(), 9u);
  EXPECT_EQ(model.norms[8].name, "norm");
  EXPECT_EQ(
      names(model.norms[0].readers),
      (Names{"query:blocks.0.attn.q.weight", "key:blocks.0.attn.k.weight", "value:blocks.0.attn.v.weight"}));
  EXPECT_FALSE(model.norms[0].connections_known) << "encodings write a part of the stream each";
  EXPECT_TRUE(model.norms[1].connections_known);
  EXPECT_TRUE(model.missing.empty());
}

TEST(RealCheckpoints, PrestoHasTwoStacks) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/presto.safetensors");
  const Model model = described(path);
  EXPECT_EQ(model.architecture, "presto");
  EXPECT_EQ(model.layers, 4);
  ASSERT_EQ(model.norms.size(), 10u);
  EXPECT_EQ(model.norms[4].name, "encoder.norm");
  EXPECT_EQ(model.norms[4].stack, "encoder");
  EXPECT_EQ(names(model.norms[4].readers), Names{"decoder embedding:decoder.decoder_embed.weight"});
  EXPECT_EQ(model.norms[5].name, "decoder.decoder_blocks.0.norm1");
  EXPECT_EQ(model.norms[5].stack, "decoder");
  EXPECT_EQ(model.norms[9].readers.size(), 10u);
  EXPECT_TRUE(model.missing.empty());
}

TEST(RealCheckpoints, Llama2cKeysAreReadInTheOrderOfTheirBytes) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/llama2c_stories260K.safetensors");
  const Model model = described(path);
  EXPECT_EQ(model.architecture, "llama2c");
  EXPECT_EQ(model.layers, 5);
  EXPECT_EQ(model.width, 64u);
  EXPECT_EQ(model.heads_per_layer, 8u);
  EXPECT_EQ(model.key_value_heads, 4u);
  EXPECT_EQ(model.heads.size(), 40u);
  ASSERT_EQ(model.norms.size(), 11u);
  const Norm& norm = model.norms[6];
  EXPECT_EQ(norm.name, "rms_att[3]");
  EXPECT_EQ(norm.kind, NormKind::rms);
  EXPECT_EQ(norm.gain->selector(), "rms_att[3]");
  EXPECT_EQ(norm.gain->offset, 192u);
  ASSERT_EQ(norm.readers.size(), 3u);
  EXPECT_EQ(norm.readers[1].weight.selector(), "wk[3]");
  EXPECT_EQ(norm.readers[1].in, 64u);
  EXPECT_EQ(norm.readers[1].out, 32u);
  EXPECT_EQ(norm.readers[1].layout, Layout::out_in);
  EXPECT_TRUE(notes_mention(model, "\"wk\" is declared [5, 64, 32] and read as [32, 64]"));
  EXPECT_EQ(model.heads[7].key_value_head, 3);
  EXPECT_EQ(model.heads[7].key->first_out, 24u);
  ASSERT_TRUE(model.heads[7].rotary.has_value());
  EXPECT_TRUE(model.heads[7].rotary->interleaved) << "llama2.c turns neighbours";
  EXPECT_EQ(model.heads[7].rotary->dims, 8u);
  EXPECT_NEAR(model.heads[7].rotary->frequencies[1], 0.1, 1e-15);
  EXPECT_TRUE(notes_mention(model, "rotary base 10000 is assumed"));
  EXPECT_TRUE(model.vocabulary->tied);
  EXPECT_EQ(model.vocabulary->size, 512u);
}

TEST(RealCheckpoints, RwkvHasGroupNormsInsideItsBranches) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/rwkv_tiny_5v2_730K.safetensors");
  const Model model = described(path);
  EXPECT_EQ(model.architecture, "rwkv");
  EXPECT_EQ(model.layers, 12);
  EXPECT_EQ(model.width, 64u);
  ASSERT_EQ(model.norms.size(), 38u);
  EXPECT_EQ(model.norms[0].name, "blocks.0.ln0");
  EXPECT_EQ(model.norms[0].placement, Placement::post);
  EXPECT_EQ(names(model.norms[0].writers), Names{"token embedding:emb.weight"});
  EXPECT_EQ(model.norms[1].writing_norms, Names{"blocks.0.ln0"});
  const Norm& heads = norm_named(model, "blocks.5.att.ln_x");
  EXPECT_EQ(heads.kind, NormKind::layer);
  EXPECT_EQ(heads.groups, 8u);
  EXPECT_EQ(heads.width, 64u);
  EXPECT_EQ(heads.placement, Placement::inside);
  EXPECT_TRUE(heads.readers.empty()) << "a gate stands between";
  EXPECT_EQ(model.vocabulary->final_norm, "ln_out");
  EXPECT_FALSE(model.vocabulary->tied);
  EXPECT_TRUE(model.missing.empty());
}

TEST(RealCheckpoints, TorchEncoderIsTakenForPostLnAndSaysSo) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/mnist_vit_fpga.safetensors");
  const Model model = described(path);
  EXPECT_EQ(model.architecture, "torch_vit");
  EXPECT_EQ(model.layers, 1);
  EXPECT_EQ(model.width, 32u);
  ASSERT_EQ(model.norms.size(), 3u);
  EXPECT_EQ(model.norms[0].placement, Placement::post);
  EXPECT_EQ(model.norms[2].placement, Placement::pre);
  EXPECT_EQ(names(model.norms[0].writers),
            (Names{"patch embedding:patch_embed.proj.weight", "position embedding:pos_embed",
                   "attention out:encoder.0.attn.out_proj.weight"}));
  EXPECT_TRUE(notes_mention(model, "Post-LN is assumed"));
  EXPECT_TRUE(model.missing.empty());
}

}  // namespace
}  // namespace normscope::models
