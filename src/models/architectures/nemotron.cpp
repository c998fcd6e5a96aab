#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void nemotron_layer(Builder& b) {
  llama_attention(b);
  b.norm("post_attention_layernorm", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "mlp.up_proj");
  b.writes("mlp out", "mlp.down_proj", inner);
}

// LayerNorms store their gain minus 1; the MLP has no gate.
void nemotron_forward(Builder& b) {
  b.norms({.kind = NormKind::layer,
           .placement = Placement::pre,
           .gain_offset = 1.0,
           .eps = 1e-5,
           .eps_key = "norm_eps"});
  b.decoder({.activation = "relu2"});
  b.grouped_queries();
  b.rotary({.portion = 0.5, .portion_key = "rope_percent"});
  llama_stack(b, {.layer = nemotron_layer});
}

}  // namespace

extern const Architecture nemotron = {
    .name = "nemotron",
    .title = "Nemotron",
    .model_types = {"nemotron"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.", "layers.{}.mlp.up_proj."},
    .without = {},
    .describe = nemotron_forward,
    .by_model_type_only = true,
    .centres_exactly = true,
    .rotates_exactly = true,
};

}  // namespace normscope::models::architectures
