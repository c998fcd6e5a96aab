#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void bloom_forward(Builder& b) {
  // With this flag the residual starts from a norm's output, which is then the stream, as behind a post-norm.
  const bool from_norm = b.config().flag({"apply_residual_connection_post_layernorm"}).value_or(false);
  b.norms({.kind = NormKind::layer,
           .placement = from_norm ? Placement::post : Placement::pre,
           .eps = 1e-5,
           .eps_key = "layer_norm_epsilon"});
  if (from_norm) b.scores_not_modelled("apply_residual_connection_post_layernorm: true");
  b.scores({.most_alibi = 8.0});
  if (!from_norm) b.decoder({.activation = "gelu_new", .fixed_activation = true, .reads_activation = false});
  b.embedding("token embedding", "word_embeddings");
  b.norm("word_embeddings_layernorm", "embedding", Placement::post);
  b.each_layer("h.{}.", [&] {
    b.norm("input_layernorm", "attention input");
    const std::uint64_t attended = b.attention_fused_per_head("self_attention.query_key_value");
    b.writes("attention out", "self_attention.dense", attended);
    b.norm("post_attention_layernorm", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "mlp.dense_h_to_4h");
    b.writes("mlp out", "mlp.dense_4h_to_h", inner);
  });
  b.norm("ln_f", "final", Placement::pre);
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture bloom = {
    .name = "bloom",
    .title = "BLOOM",
    .model_types = {"bloom"},
    .signature = {"h.{}.self_attention.query_key_value.", "h.{}.input_layernorm.",
                  "word_embeddings_layernorm."},
    .without = {},
    .describe = bloom_forward,
    .harmless = {"n_embed", "offset_alibi", "seq_length", "skip_bias_add*", "bias_dropout_fusion",
                 "masked_softmax_fusion", "attention_softmax_in_fp32"},
    .in_llama_cpp = "gguf_bloom",
};

}  // namespace normscope::models::architectures
