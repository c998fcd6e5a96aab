#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Branches between two norms each; the output of attention is multiplied by a gate.
void afmoe_layer(Builder& b) {
  b.norm("input_layernorm", "attention input");
  b.branch();
  b.reads("attention gate", "self_attn.gate_proj");
  llama_projections(b);
  b.norm_of_branch("post_attention_layernorm", "attention output");
  b.norm("pre_mlp_layernorm", "mlp input");
  b.branch();
  if (b.has("mlp.router.")) {
    b.within("mlp.", [&] {
      b.other("expert_bias");  // added to scores when experts are chosen
      gated_experts(b, {.router = "router.gate"});
      b.within("shared_experts.", [&] { gated_mlp(b, "gate_proj", "up_proj", "down_proj"); });
    });
  } else {
    llama_mlp(b);
  }
  b.norm_of_branch("post_mlp_layernorm", "mlp output");
}

void afmoe_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  b.head_dim_from("layers.0.self_attn.q_norm");
  b.rotary({.windows_only = true});
  b.windows({.period = b.config().count({"global_attn_every_n_layers"}).value_or(4)});
  llama_stack(b, {.layer = afmoe_layer});
}

}  // namespace

extern const Architecture afmoe = {
    .name = "afmoe",
    .title = "AFMoE",
    .model_types = {"afmoe"},
    .signature = {"layers.{}.self_attn.gate_proj.", "layers.{}.pre_mlp_layernorm.",
                  "layers.{}.post_mlp_layernorm.", "layers.{}.input_layernorm."},
    .without = {},
    .describe = afmoe_forward,
    .harmless = {"mup_enabled", "num_dense_layers", "num_shared_experts", "route_*", "score_func"},
};

}  // namespace normscope::models::architectures
