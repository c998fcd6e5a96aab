#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// 7B: one key-value head, stored behind all queries. 40B: groups of queries with their key and value. RW:
// heads with a key and a value each, and ALiBi.
void falcon_forward(Builder& b) {
  b.norms(
      {.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_epsilon"});
  const Config& config = b.config();
  // Code of other model_types, and files without one, leave it to the tensors.
  const bool typed = b.model_type() == "falcon";
  const bool grouped = config.flag({"new_decoder_architecture"}).value_or(!typed && b.has("h.0.ln_attn."));
  const bool one_key = config.flag({"multi_query"}).value_or(true) && !grouped;
  const bool beside =
      config.flag({"parallel_attn"}).value_or(typed || !b.has("h.0.post_attention_layernorm."));
  const bool parallel = grouped || beside;
  const std::uint64_t stated = config.count({"num_kv_heads", "n_head_kv"}).value_or(b.heads().heads);
  b.heads().key_value_heads = one_key ? 1 : stated;
  if (grouped || one_key) b.grouped_queries();
  if (config.flag({"alibi"}).value_or(false)) {
    b.scores({.most_alibi = 8.0, .rounded_alibi = true});
    b.ignores({"rope_theta", "rope_parameters", "rope_scaling"});
  } else {
    b.rotary({});
  }
  b.biases_by(Biased::attention, {"bias"});
  b.biases_by(Biased::mlps, {"bias"});
  b.decoder({.activation = "gelu"});
  b.embedding("token embedding", "word_embeddings");
  b.each_layer("h.{}.", [&] {
    const bool two = grouped && b.has("ln_attn.");
    b.norm(two ? "ln_attn" : "input_layernorm", "attention input");
    const std::uint64_t attended = b.fused_attention(
        "self_attention.query_key_value", {.blocks = one_key ? std::uint64_t{1} : std::uint64_t{0}});
    b.rotary_buffer("self_attention.rotary_emb.inv_freq");
    if (two) b.norm_beside("ln_mlp", "mlp input");
    b.writes("attention out", "self_attention.dense", attended);
    if (!parallel) b.norm("post_attention_layernorm", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "mlp.dense_h_to_4h");
    b.writes("mlp out", "mlp.dense_4h_to_h", inner);
  });
  b.norm("ln_f", "final");
  b.unembedding({"lm_head"}, true);
  b.biases_by(Biased::unembedding, {});
}

}  // namespace

extern const Architecture falcon = {
    .name = "falcon",
    .title = "Falcon",
    .model_types = {"falcon", "RefinedWeb", "RefinedWebModel"},
    .signature = {"h.{}.self_attention.query_key_value.", "h.{}.mlp.dense_h_to_4h.", "word_embeddings."},
    .without = {"word_embeddings_layernorm."},
    .describe = falcon_forward,
    // auto_map: published with code of its own before it was part of transformers
    .harmless = {"num_ln_in_parallel_attn", "auto_map", "num_kv_heads", "n_head_kv"},
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_falcon",
};

}  // namespace normscope::models::architectures
