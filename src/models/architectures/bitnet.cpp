#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The outputs of both branches are linear maps of a norm of their own.
void writes_behind(Builder& b, const char* norm, const char* role, const char* map, std::uint64_t width) {
  b.norm_inside(norm, role, width);
  b.reads(role, map);
  b.writes(role, map);
}

void bitnet_layer(Builder& b) {
  b.norm("input_layernorm", "attention input");
  const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  writes_behind(b, "self_attn.attn_sub_norm", "attention out", "self_attn.o_proj", attended);
  b.norm("post_attention_layernorm", "mlp input");
  const std::uint64_t inner = b.reads("mlp gate", "mlp.gate_proj");
  b.reads("mlp in", "mlp.up_proj", inner);
  writes_behind(b, "mlp.ffn_sub_norm", "mlp out", "mlp.down_proj", inner);
}

void bitnet_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  b.rotary({.theta = 5e5});
  llama_stack(b, {.layer = bitnet_layer});
}

}  // namespace

extern const Architecture bitnet = {
    .name = "bitnet",
    .title = "BitNet",
    .model_types = {"bitnet"},
    .signature = {"layers.{}.self_attn.attn_sub_norm.", "layers.{}.mlp.ffn_sub_norm.",
                  "layers.{}.input_layernorm.", "layers.{}.post_attention_layernorm.",
                  "layers.{}.self_attn.q_proj."},
    .without = {},
    .describe = bitnet_forward,
};

}  // namespace normscope::models::architectures
