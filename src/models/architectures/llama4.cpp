#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// In layers that rotate, queries and keys pass a norm without gain.
void norms_of_rotated_heads(Builder& b) {
  if (!b.config().flag({"use_qk_norm"}).value_or(true)) return;
  if (!b.rotates()) return;
  b.without_parameters([&] { norms_of_queries_and_keys(b, "self_attn.qk_norm", "self_attn.qk_norm"); });
}

// The router's weight multiplies what an expert reads, so routed experts do not read the norm itself.
void experts(Builder& b) {
  b.reads("router", "router");
  b.within("shared_expert.", [&] { gated_mlp(b, "gate_proj", "up_proj", "down_proj"); });
  b.reads_are_indirect();
  b.other("experts.gate_up_proj");
  b.layout(Layout::in_out);
  b.each_expert("experts.down_proj", [&] { b.writes("mlp out", "experts.down_proj"); });
  b.layout(Layout::out_in);
}

void llama4_layer(Builder& b) {
  llama_attention(b);
  norms_of_rotated_heads(b);
  b.norm("post_attention_layernorm", "mlp input");
  b.within("feed_forward.", [&] {
    if (b.has("router.")) return experts(b);
    gated_mlp(b, "gate_proj", "up_proj", "down_proj");
  });
}

void llama4_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  const bool norms = b.config().flag({"use_qk_norm"}).value_or(true);
  b.rotary({.interleaved = true, .theta = 5e5, .before_norms = norms, .still_every = 4});
  // Their defaults change scores; a value is reported like every field that is not modelled.
  for (const char* field : {"attn_temperature_tuning", "attention_chunk_size"}) {
    if (!b.config().states({field})) b.scores_not_modelled(std::string(field) + ": not stated");
  }
  llama_stack(b, {.layer = llama4_layer});
}

}  // namespace

extern const Architecture llama4 = {
    .name = "llama4",
    .title = "Llama 4",
    .model_types = {"llama4", "llama4_text"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.", "layers.{}.feed_forward."},
    .without = {},
    .describe = llama4_forward,
    .harmless = {"interleave_moe_layer_step", "intermediate_size_mlp", "attn_scale", "floor_scale",
                 "for_llm_compressor"},
    .by_model_type_only = true,
    .in_llama_cpp = "gguf_llama4",
};

}  // namespace normscope::models::architectures
