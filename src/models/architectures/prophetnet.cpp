#include <cstdint>
#include <string>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void prophetnet_mlp(Builder& b) {
  const std::uint64_t inner = b.reads("mlp in", "feed_forward.intermediate");
  b.writes("mlp out", "feed_forward.output", inner);
  b.norm("feed_forward_layer_norm", "mlp output");
}

void prophetnet_attention(Builder& b, bool decoder) {
  const std::uint64_t attended =
      b.attention("self_attn.query_proj", "self_attn.key_proj", "self_attn.value_proj");
  if (decoder) b.reads("relative positions", "self_attn.relative_pos_embeddings");
  b.writes("attention out", "self_attn.out_proj", attended);
  b.norm("self_attn_layer_norm", "attention output");
}

void prophetnet_stack(Builder& b, const std::string& name, bool decoder) {
  b.new_stream();
  b.stack(name);
  b.heads() = {.heads = b.config()
                            .count({decoder ? "num_decoder_attention_heads" : "num_encoder_attention_heads"})
                            .value_or(0)};
  b.embedding("token embedding", b.has("word_embeddings.") ? "word_embeddings" : name + ".word_embeddings");
  b.other(name + ".word_embeddings.weight");  // the same table again
  b.within(name + ".", [&] {
    b.embedding("position embedding", "position_embeddings");
    if (decoder) {
      b.embedding("n-gram embedding", "ngram_embeddings");
      b.writes_are_indirect();
    }
    b.norm("embeddings_layer_norm", "embedding");
    const auto layer = [&] {
      prophetnet_attention(b, decoder);
      if (decoder) {
        const std::uint64_t attended =
            b.cross_attention("cross_attn.query_proj", "cross_attn.key_proj", "cross_attn.value_proj");
        b.writes("cross-attention out", "cross_attn.out_proj", attended);
        b.norm("cross_attn_layer_norm", "cross-attention output");
      }
      prophetnet_mlp(b);
    };
    if (decoder) {
      b.each_layer("layers.{}.", layer, {"num_decoder_layers"});
    } else {
      b.each_layer("layers.{}.", layer, {"num_encoder_layers"});
    }
  });
}

// BART whose decoder predicts several next tokens at once: beside each position stand as many more, which
// attend with relative positions of their own.
void prophetnet_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-5, .eps_key = ""});
  prophetnet_stack(b, "encoder", false);
  b.remember_for_cross_attention();
  b.scores_not_modelled("relative positions of n-grams");
  prophetnet_stack(b, "decoder", true);
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture prophetnet = {
    .name = "prophetnet",
    .title = "ProphetNet",
    .model_types = {"prophetnet"},
    .signature = {"encoder.layers.{}.self_attn.query_proj.",
                  "decoder.layers.{}.self_attn.relative_pos_embeddings.", "decoder.ngram_embeddings."},
    .without = {},
    .describe = prophetnet_forward,
    .harmless = {"encoder_*", "decoder_*", "num_encoder_*", "num_decoder_*", "ngram", "num_buckets",
                 "relative_max_distance", "disable_ngram_loss", "eps"},
};

}  // namespace normscope::models::architectures
