#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Llama with norms that have no gain. Queries and keys are normalized behind their rotation, which turns the
// other way, and the norm of the token embedding is the final norm as well.
void nanochat_layer(Builder& b) {
  b.norm("input_layernorm", "attention input");
  const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  norms_of_queries_and_keys(b, "self_attn.q_norm", "self_attn.k_norm");
  b.writes("attention out", "self_attn.o_proj", attended);
  b.norm("post_attention_layernorm", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "mlp.fc1");
  b.writes("mlp out", "mlp.fc2", inner);
}

void nanochat_forward(Builder& b) {
  b.norms({.kind = NormKind::rms,
           .placement = Placement::pre,
           .eps = 1e-6,
           .eps_key = "rms_norm_eps",
           .gainless = true});
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  b.rotary({.backwards = true, .before_norms = true});
  b.logits(1.0, b.stated_number("final_logit_softcapping", 15.0).value_or(0.0));
  b.embedding("token embedding", "embed_tokens");
  b.applications(2);
  b.norm("norm", "embedding and final", Placement::post);
  b.applications(1);
  b.each_layer("layers.{}.", [&] { nanochat_layer(b); });
  b.norm("norm", "embedding and final", Placement::post);
  b.unembedding({"lm_head"}, false);
  b.biases_by(Biased::unembedding, {});
}

}  // namespace

extern const Architecture nanochat = {
    .name = "nanochat",
    .title = "NanoChat",
    .model_types = {"nanochat"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.mlp.fc1."},
    .without = {"layers.{}.input_layernorm."},
    .describe = nanochat_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
