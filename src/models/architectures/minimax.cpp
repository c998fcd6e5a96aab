#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Scores without a softmax, of queries and keys behind an activation, that decay with the distance. The norm
// of the outputs has the default eps of its class.
void lightning_attention(Builder& b) {
  for (const char* name : {"slope_rate", "query_decay", "key_decay", "diagonal_decay"}) b.buffer(name);
  b.reads("mixer in", "qkv_proj");
  b.reads("mixer gate", "output_gate");
  b.norm_inside("norm", "mixer output", 0);
  b.last_eps(1e-6, {});
  b.writes("mixer out", "out_proj");
}

// The stream goes on from the output of each norm, times a factor.
void minimax_layer(Builder& b) {
  const bool attends = b.has("self_attn.q_proj.");
  b.norm("input_layernorm", attends ? "attention input" : "mixer input");
  if (attends) {
    llama_projections(b);
  } else {
    b.within("self_attn.", [&] { lightning_attention(b); });
  }
  b.norm("post_attention_layernorm", "mlp input");
  b.within("block_sparse_moe.", [&] { gated_experts(b, {.gate = "w1", .in = "w3", .out = "w2"}); });
}

void minimax_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::post, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.note("its lightning attention has no softmax, so only other layers have heads");
  b.biases_by(Biased::attention, {});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  b.rotary({.theta = 1e6});
  if (b.config().has({"sliding_window"})) b.windows({.kinds_key = ""});
  b.ignores({"layer_types"});
  llama_stack(b, {.layer = minimax_layer});
}

}  // namespace

extern const Architecture minimax = {
    .name = "minimax",
    .title = "MiniMax",
    .model_types = {"minimax"},
    .signature = {"layers.{}.self_attn.output_gate.", "layers.{}.self_attn.qkv_proj.",
                  "layers.{}.input_layernorm.", "layers.{}.block_sparse_moe.experts."},
    .without = {},
    .describe = minimax_forward,
    .harmless = {"block_size", "*_alpha_factor", "*_beta_factor"},
};

}  // namespace normscope::models::architectures
