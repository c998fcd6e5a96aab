#include "architecture.hpp"
#include "builder.hpp"
#include "llama_block.hpp"

namespace normscope::model::architectures {

namespace {

void forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .gain_offset = 1.0, .eps = 1e-6});
  const bool third = b.has("layers.0.self_attn.q_norm.");
  b.rotary({.theta = third ? 1e6 : 1e4, .has_local_theta = third});
  if (third) b.windows_but_every(6);
  b.grouped_queries();
  b.score_divisor(b.config().number({"query_pre_attn_scalar"}));
  if (b.config().number({"attn_logit_softcapping"})) {
    b.note("attention scores are capped; spreads of heads are those before the cap, which only lessens them");
  }
  // Gemma 2 and 3 normalize what a branch reads and what it writes. There post_attention_layernorm
  // is the second of the two; in Gemma 1, as in Llama, it is what the MLP reads.
  const bool sandwich = b.has("layers.0.pre_feedforward_layernorm.");
  b.head_dim_from("layers.0.self_attn.q_norm");
  b.embedding("token embedding", "embed_tokens");
  b.each_layer("layers.{}.", [&] {
    llama_attention(b);
    if (sandwich) b.norm_of_branch("post_attention_layernorm", "attention output");
    b.norm(sandwich ? "pre_feedforward_layernorm" : "post_attention_layernorm", "mlp input");
    gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    if (sandwich) b.norm_of_branch("post_feedforward_layernorm", "mlp output");
  });
  b.norm("norm", "final");
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture gemma = {
    .name = "gemma",
    .title = "Gemma",
    .model_types = {"gemma", "gemma2", "gemma3", "gemma3_text"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.pre_feedforward_layernorm.",
                  "layers.{}.post_feedforward_layernorm."},
    .without = {},
    .describe = forward,
};

}  // namespace normscope::model::architectures
