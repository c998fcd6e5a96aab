#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Gates before and behind a short convolution over positions.
void short_convolution(Builder& b) {
  b.reads("mixer in", "in_proj");
  b.other("conv.weight");
  b.other("conv.bias");
  b.writes("mixer out", "out_proj");
}

void lfm2_layer(Builder& b) {
  const bool attends = b.has("self_attn.");
  b.norm("operator_norm", attends ? "attention input" : "mixer input");
  if (attends) {
    const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    norms_of_queries_and_keys(b, "self_attn.q_layernorm", "self_attn.k_layernorm");
    b.writes("attention out", "self_attn.out_proj", attended);
  } else {
    b.within("conv.", [&] { short_convolution(b); });
  }
  b.norm("ffn_norm", "mlp input");
  b.within("feed_forward.", [&] {
    if (!b.has("gate.")) return gated_mlp(b, "w1", "w3", "w2");
    if (b.config().flag({"use_expert_bias"}).value_or(true)) router_correction(b, "expert_bias");
    gated_experts(b, {.gate = "w1", .in = "w3", .out = "w2"});
  });
}

void lfm2_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "norm_eps"});
  b.biases_by(Biased::attention, {});
  b.biases_by(Biased::mlps, {});
  b.biases_by(Biased::mixers, {"conv_bias"});
  b.grouped_queries();
  b.rotary({.theta = 1e6});
  llama_stack(b, {.tied = true, .layer = lfm2_layer, .final_norm = "embedding_norm"});
}

}  // namespace

extern const Architecture lfm2 = {
    .name = "lfm2",
    .title = "LFM2",
    .model_types = {"lfm2", "lfm2_moe"},
    .signature = {"layers.{}.operator_norm.", "layers.{}.ffn_norm.", "layers.{}.feed_forward."},
    .without = {},
    .describe = lfm2_forward,
    .harmless = {"block_*", "conv_*", "full_attn_idxs", "layer_types", "num_dense_layers",
                 "routed_scaling_factor", "use_pos_enc"},
};

}  // namespace normscope::models::architectures
