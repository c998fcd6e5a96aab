#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// No entry says so: llama.cpp knows the model without these norms by its 128 experts.
bool gguf_llama4_norms_heads(const Builder& b) {
  return b.config().count({"num_experts"}).value_or(0) != 128;
}

// The router's weight multiplies what an expert reads, so routed experts do not read the norm itself.
void gguf_llama4_experts(Builder& b) {
  b.reads("router", "ffn_gate_inp");
  gated_mlp(b, "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp");
  b.reads_are_indirect();
  b.other("ffn_gate_exps.weight");
  b.other("ffn_up_exps.weight");
  b.each_expert("ffn_down_exps.weight", [&] { b.writes("mlp out", "ffn_down_exps"); });
}

// In layers that rotate, queries and keys pass a norm without gain.
void gguf_llama4_layer(Builder& b) {
  b.norm("attn_norm", "attention input");
  gguf_attention(b);
  if (gguf_llama4_norms_heads(b) && b.rotates()) {
    b.without_parameters([&] { norms_of_queries_and_keys(b, "attn_qk_norm", "attn_qk_norm"); });
  }
  b.norm("ffn_norm", "mlp input");
  if (b.has("ffn_gate_inp.")) return gguf_llama4_experts(b);
  gguf_gated_mlp(b);
}

void gguf_llama4_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5});
  b.rotary({.interleaved = true,
            .theta = 5e5,
            .dims = gguf_rotary_dims(b),
            .before_norms = gguf_llama4_norms_heads(b),
            .still_every = 4});
  b.scores_not_modelled("attn_temperature_tuning: not stated; attention_chunk_size: not stated");
  gguf_stack(b, gguf_llama4_layer);
}

}  // namespace

extern const Architecture gguf_llama4 = {
    .name = "gguf_llama4",
    .title = "Llama 4 in llama.cpp's names",
    .model_types = {"llama4"},
    .signature = {"blk.{}.attn_output.", "blk.{}.attn_norm.", "blk.{}.ffn_norm."},
    .without = {},
    .describe = gguf_llama4_forward,
    .harmless = {"interleave_moe_layer_step"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
