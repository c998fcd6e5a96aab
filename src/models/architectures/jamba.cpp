#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void feed_forward(Builder& b) {
  b.within("feed_forward.", [&] {
    if (b.has("router.")) {
      gated_experts(b, {.router = "router"});
    } else {
      gated_mlp(b, "gate_proj", "up_proj", "down_proj");
    }
  });
}

// Layers of attention between layers of a state space. Jamba's attention knows no positions, and its state
// space has norms inside; Bamba's queries and keys are rotated in part, and its state space is Mamba 2's.
void jamba_forward(Builder& b) {
  b.norms({.kind = NormKind::rms,
           .placement = Placement::pre,
           .eps = b.model_type() == "bamba" ? 1e-5 : 1e-6,
           .eps_key = "rms_norm_eps"});
  if (b.model_type() == "bamba") {
    b.biases_by(Biased::attention, {"attention_bias"});
    b.biases_by(Biased::mlps, {"mlp_bias"});
  } else {
    b.biases_by(Biased::attention, {});
    b.biases_by(Biased::mlps, {});
  }
  b.biases_by(Biased::mixers, {"mamba_proj_bias"});
  b.grouped_queries();
  const bool norms_inside = b.model_type() == "jamba" || b.has("layers.0.mamba.dt_layernorm.");
  if (!norms_inside) b.rotary({.portion = 0.5});
  b.embedding("token embedding", "embed_tokens");
  b.each_layer("layers.{}.", [&] {
    if (b.has("mamba.")) {
      b.norm("input_layernorm", "mixer input");
      b.within("mamba.",
               [&] { state_space_mixer(b, norms_inside ? StateNorms::with_gains : StateNorms::none); });
    } else {
      llama_attention(b);
    }
    b.norm("pre_ff_layernorm", "mlp input");
    feed_forward(b);
  });
  b.norm("final_layernorm", "final");
  b.unembedding({"lm_head"}, false);
  b.biases_by(Biased::unembedding, {});
}

}  // namespace

extern const Architecture jamba = {
    .name = "jamba",
    .title = "Jamba or Bamba",
    .model_types = {"jamba", "bamba"},
    .signature = {"layers.{}.mamba.in_proj.", "layers.{}.input_layernorm.", "layers.{}.pre_ff_layernorm.",
                  "layers.{}.feed_forward."},
    .without = {},
    .describe = jamba_forward,
    .harmless = {"attn_layer_indices", "attn_layer_offset", "attn_layer_period", "expert_layer_offset",
                 "expert_layer_period", "mamba_*", "num_logits_to_keep", "time_step_limit",
                 "use_associative_scan", "use_mamba_kernels", "use_mambapy", "z_loss_coefficient"},
};

}  // namespace normscope::models::architectures
