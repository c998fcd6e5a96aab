#include <cstdint>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Queries are keys where they are hashed into buckets.
void reformer_attention(Builder& b) {
  b.norm("layer_norm", "attention input");
  b.within("self_attention.", [&] {
    if (b.has("query_key.")) {
      b.reads("query and key", "query_key");
    } else {
      b.reads("query", "query");
      b.reads("key", "key");
    }
    b.reads("value", "value");
    b.buffer("mask_value_float16");
    b.buffer("mask_value_float32");
    b.buffer("self_mask_value_float16");
    b.buffer("self_mask_value_float32");
  });
}

// Two streams: attention reads the second and writes to the first, the MLP the other way round, and the final
// norm reads both side by side.
void reformer_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.biases_by(Biased::attention, {});
  b.note("attention is within chunks of positions or buckets of hashes, so no head's scores are bounded");
  b.note("where queries are keys, keys are divided by their length, which is not analysed");
  b.embedding("token embedding", "embeddings.word_embeddings");
  b.embedding("position embedding", "embeddings.position_embeddings.embedding", Need::optional);
  b.partial_input("embeddings.position_embeddings.weights.");
  b.each_layer("encoder.layers.{}.", [&] {
    b.within("attention.", [&] { reformer_attention(b); });
    b.writes("attention out", "attention.output.dense");
    b.within("feed_forward.", [&] {
      b.norm("layer_norm", "mlp input");
      const std::uint64_t inner = b.reads("mlp in", "dense.dense");
      b.writes("mlp out", "output.dense", inner);
    });
  });
  b.norm_inside("encoder.layer_norm", "final", 2 * b.width());
  b.unembedding({"lm_head.decoder"}, false);
  b.where("lm_head.", [&] { b.other("bias"); });  // the decoder's, again
}

}  // namespace

extern const Architecture reformer = {
    .name = "reformer",
    .title = "Reformer",
    .model_types = {"reformer"},
    .signature = {"encoder.layers.{}.attention.self_attention.",
                  "encoder.layers.{}.feed_forward.dense.dense.", "encoder.layers.{}.attention.layer_norm."},
    .without = {},
    .describe = reformer_forward,
    .harmless = {"attention_head_size", "attn_layers", "axial_*", "chunk_size_lm_head", "feed_forward_size",
                 "hash_seed", "local_*", "lsh_*", "num_buckets", "num_chunks_*", "num_hashes"},
};

}  // namespace normscope::models::architectures
