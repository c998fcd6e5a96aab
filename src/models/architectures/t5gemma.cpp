#include <cmath>
#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Norms before and behind each branch, as in Gemma 2.
void t5gemma_layer(Builder& b, bool decoder) {
  b.norm("pre_self_attn_layernorm", "attention input");
  b.branch();
  llama_projections(b);
  b.norm_of_branch("post_self_attn_layernorm", "attention output");
  if (decoder) {
    b.norm("pre_cross_attn_layernorm", "cross-attention input");
    b.branch();
    b.within("cross_attn.", [&] {
      const std::uint64_t attended = b.cross_attention("q_proj", "k_proj", "v_proj");
      b.writes("cross-attention out", "o_proj", attended);
    });
    b.norm_of_branch("post_cross_attn_layernorm", "cross-attention output");
  }
  b.norm("pre_feedforward_layernorm", "mlp input");
  b.branch();
  llama_mlp(b);
  b.norm_of_branch("post_feedforward_layernorm", "mlp output");
}

void t5gemma_stack(Builder& b, const char* name, bool decoder) {
  b.section(name);
  b.norms({.kind = NormKind::rms,
           .placement = Placement::pre,
           .gain_offset = 1.0,
           .eps = 1e-6,
           .eps_key = "rms_norm_eps"});
  b.grouped_queries();
  b.rotary({});
  b.windows({.period = 2});
  const double scalar = b.stated_number("query_pre_attn_scalar", 256.0).value_or(256.0);
  b.scores({.scale = 1.0 / std::sqrt(scalar),
            .soft_cap = b.stated_number("attn_logit_softcapping", 50.0).value_or(0.0)});
  b.scores_not_modelled(decoder ? "" : "rotary positions without a causal mask");
  const double cap = b.stated_number("final_logit_softcapping", 30.0).value_or(0.0);
  if (decoder) b.logits(1.0, cap);
  b.new_stream();
  b.stack(name);
  b.within(std::string(name) + ".", [&] {
    b.embedding("token embedding", "embed_tokens");
    b.each_layer("layers.{}.", [&] { t5gemma_layer(b, decoder); });
    b.norm("norm", "final");
  });
}

void t5gemma_forward(Builder& b) {
  t5gemma_stack(b, "encoder", false);
  if (!b.has("decoder.")) return;
  b.remember_for_cross_attention();
  t5gemma_stack(b, "decoder", true);
  b.unembedding({"lm_head.out_proj"}, true);
}

}  // namespace

extern const Architecture t5gemma = {
    .name = "t5gemma",
    .title = "T5Gemma",
    .model_types = {"t5gemma"},
    .signature = {"encoder.layers.{}.pre_self_attn_layernorm.", "encoder.layers.{}.post_self_attn_layernorm.",
                  "encoder.layers.{}.pre_feedforward_layernorm."},
    .without = {},
    .describe = t5gemma_forward,
    .keeps_logits_within = {"t5gemma"},
};

}  // namespace normscope::models::architectures
