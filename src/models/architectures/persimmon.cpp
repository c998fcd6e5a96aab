#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void persimmon_layer(Builder& b) {
  b.norm("input_layernorm", "attention input");
  const std::uint64_t attended = b.attention_fused_per_head("self_attn.query_key_value");
  const bool by_default = !b.model_type().empty() || b.has("self_attn.q_layernorm.");
  if (b.config().flag({"qk_layernorm"}).value_or(by_default)) {
    norms_of_queries_and_keys(b, "self_attn.q_layernorm", "self_attn.k_layernorm");
  }
  b.rotary_buffer("self_attn.rotary_emb.inv_freq");
  b.writes("attention out", "self_attn.dense", attended);
  b.norm("post_attention_layernorm", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "mlp.dense_h_to_4h");
  b.writes("mlp out", "mlp.dense_4h_to_h", inner);
}

void persimmon_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_eps"});
  b.decoder({.activation = "relu2"});
  b.rotary({.theta = 0.0, .portion = 0.5});
  llama_stack(b, {.layer = persimmon_layer, .final_norm = "final_layernorm"});
}

}  // namespace

extern const Architecture persimmon = {
    .name = "persimmon",
    .title = "Persimmon",
    .model_types = {"persimmon"},
    .signature = {"layers.{}.self_attn.query_key_value.", "layers.{}.mlp.dense_h_to_4h.", "final_layernorm."},
    .without = {},
    .describe = persimmon_forward,
    .centres_exactly = true,
    .rotates_exactly = true,
};

}  // namespace normscope::models::architectures
