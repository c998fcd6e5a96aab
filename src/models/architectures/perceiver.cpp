#include <algorithm>
#include <cstdint>
#include <string>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void perceiver_mlp(Builder& b) {
  b.norm("layernorm", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "mlp.dense1");
  b.writes("mlp out", "mlp.dense2", inner);
}

// Keys and values read what is attended to. Queries are learned, so what their norm gives does not depend on
// the input.
void cross_attention_of_learned_queries(Builder& b) {
  b.norm("layernorm2", "key and value input");
  b.reads("key", "key");
  b.reads("value", "value");
  for (const char* name : {"layernorm1", "query"}) {
    b.other(std::string(name) + ".weight");
    b.other(std::string(name) + ".bias");
  }
}

// Learned vectors attend to the input, then to each other, and learned positions to them.
void perceiver_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = ""});
  b.note("norms of learned queries are not listed: what they give does not depend on the input");
  b.embedding("token embedding", "input_preprocessor.embeddings", Need::optional);
  b.embedding("position embedding", "input_preprocessor.position_embeddings", Need::optional);
  if (!b.has("input_preprocessor.embeddings.")) b.writes_are_indirect();
  b.within("encoder.cross_attention.attention.self.", [&] { cross_attention_of_learned_queries(b); });
  b.new_stream();
  b.stream(0);
  b.embedding("latent vectors", "embeddings.latents");
  b.within("encoder.cross_attention.", [&] {
    b.writes("cross-attention out", "attention.output.dense");
    perceiver_mlp(b);
  });
  b.heads() = {.heads = b.config().count({"num_self_attention_heads"}).value_or(0)};
  const int blocks = static_cast<int>(b.config().count({"num_blocks"}).value_or(1));
  b.applications(blocks);
  for (int pass = 0; pass < std::min(blocks, 2); ++pass) {
    b.each_layer("encoder.self_attends.{}.",
                 [&] {
                   b.norm("attention.self.layernorm1", "attention input");
                   b.attention("attention.self.query", "attention.self.key", "");
                   const std::uint64_t values = b.reads("value", "attention.self.value");
                   b.writes("attention out", "attention.output.dense", values);
                   perceiver_mlp(b);
                 },
                 {"num_self_attends_per_block"});
  }
  b.applications(1);
  if (!b.has("decoder.decoding_cross_attention.")) return b.reads_are_indirect();
  b.within("decoder.decoding_cross_attention.attention.self.",
           [&] { cross_attention_of_learned_queries(b); });
  b.other("decoder.output_position_encodings.position_embeddings");
  b.new_stream();
  b.stream(0);
  b.within("decoder.decoding_cross_attention.", [&] {
    b.writes("cross-attention out", "attention.output.dense");
    perceiver_mlp(b);
  });
  b.where("embedding_decoder.", [&] { b.unembedding({}, true, false, "bias"); });
}

}  // namespace

extern const Architecture perceiver = {
    .name = "perceiver",
    .title = "Perceiver IO",
    .model_types = {"perceiver"},
    .signature = {"encoder.self_attends.{}.attention.self.query.", "encoder.self_attends.{}.layernorm.",
                  "encoder.cross_attention.layernorm."},
    .without = {},
    .describe = perceiver_forward,
    .harmless = {"num_latents", "d_latents", "num_self_attends_per_block", "num_cross_attention_heads",
                 "qk_channels", "v_channels", "cross_attention_*", "self_attention_widening_factor",
                 "use_query_residual", "train_size", "num_frames", "audio_samples_per_frame",
                 "samples_per_patch", "output_shape", "output_num_channels", "_label_trainable_num_channels"},
};

}  // namespace normscope::models::architectures
