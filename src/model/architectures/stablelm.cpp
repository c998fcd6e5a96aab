#include "architecture.hpp"
#include "builder.hpp"
#include "llama_block.hpp"

namespace normscope::model::architectures {

namespace {

// Llama's names over LayerNorms with biases; a quarter of each head turns.
void forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.grouped_queries();
  b.rotary({.portion = 0.25});
  if (!b.config().flag({"use_parallel_residual"}).value_or(false)) return llama_stack(b);
  b.embedding("token embedding", "embed_tokens");
  b.each_layer("layers.{}.", [&] {
    llama_attention(b);
    b.rotary_buffer("self_attn.rotary_emb.inv_freq");
    gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
  });
  b.norm("norm", "final");
  b.unembedding({"lm_head"}, false);
}

}  // namespace

extern const Architecture stablelm = {
    .name = "stablelm",
    .title = "StableLM",
    .model_types = {"stablelm", "stablelm_epoch"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.", "layers.{}.mlp.gate_proj."},
    .without = {},
    .describe = forward,
    .by_model_type_only = true,
};

}  // namespace normscope::model::architectures
