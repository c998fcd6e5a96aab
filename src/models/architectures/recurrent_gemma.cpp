#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// A gated linear recurrence behind a convolution, between two maps of the norm.
void recurrence(Builder& b) {
  for (const char* name :
       {"conv_1d.weight", "conv_1d.bias", "rg_lru.input_gate_weight", "rg_lru.input_gate_bias",
        "rg_lru.recurrent_gate_weight", "rg_lru.recurrent_gate_bias", "rg_lru.recurrent_param"}) {
    b.other(name);
  }
  b.reads("recurrence gate", "linear_y");
  b.reads("recurrence in", "linear_x");
  b.writes("recurrence out", "linear_out");
}

void recurrent_gemma_forward(Builder& b) {
  b.norms({.kind = NormKind::rms,
           .placement = Placement::pre,
           .gain_offset = 1.0,
           .eps = 1e-6,
           .eps_key = "rms_norm_eps"});
  b.grouped_queries();
  b.rotary({.portion = 0.5});
  b.windows({.kinds_key = ""});
  if (!b.config().has({"logits_soft_cap"})) {
    b.note("logits_soft_cap 30 is assumed, the published default: no configuration states it");
  }
  b.logits(1.0, b.config().number({"logits_soft_cap"}).value_or(30.0));
  b.embedding("token embedding", "embed_tokens");
  b.each_layer("layers.{}.", [&] {
    b.norm("temporal_pre_norm", b.has("temporal_block.q_proj.") ? "attention input" : "recurrence input");
    b.within("temporal_block.", [&] {
      if (!b.has("q_proj.")) return recurrence(b);
      const std::uint64_t attended = b.attention("q_proj", "k_proj", "v_proj");
      b.writes("attention out", "o_proj", attended);
    });
    b.norm("channel_pre_norm", "mlp input");
    gated_mlp(b, "mlp_block.gate_proj", "mlp_block.up_proj", "mlp_block.down_proj");
  });
  b.norm("final_norm", "final");
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture recurrent_gemma = {
    .name = "recurrent_gemma",
    .title = "RecurrentGemma",
    .model_types = {"recurrent_gemma"},
    .signature = {"layers.{}.temporal_pre_norm.", "layers.{}.temporal_block.", "layers.{}.channel_pre_norm."},
    .without = {},
    .describe = recurrent_gemma_forward,
    .harmless = {"block_types", "conv1d_width", "embeddings_scale_by_sqrt_dim", "final_w_init_variance_scale",
                 "lru_width", "w_init_variance_scale"},
};

}  // namespace normscope::models::architectures
