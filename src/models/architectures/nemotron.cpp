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

// Llama with an MLP that has no gate. LayerNorms of Nemotron store their gain minus 1, those of Jais 2 do
// not; Arcee has RMSNorms.
void nemotron_forward(Builder& b) {
  const bool arcee = b.model_type() == "arcee";
  const bool jais = b.model_type() == "jais2";
  b.norms({.kind = arcee ? NormKind::rms : NormKind::layer,
           .placement = Placement::pre,
           .gain_offset = arcee || jais ? 0.0 : 1.0,
           .eps = 1e-5,
           .eps_key = arcee  ? "rms_norm_eps"
                      : jais ? "layer_norm_eps"
                             : "norm_eps"});
  b.decoder({.activation = "relu2"});
  if (!jais) {
    b.biases_by(Biased::attention, {"attention_bias"});
    b.biases_by(Biased::mlps, {"mlp_bias"});
  }
  b.biases_by(Biased::norms_of_heads, {});
  b.grouped_queries();
  if (arcee || jais) {
    b.rotary({});
  } else {
    b.rotary({.portion = 0.5, .other_portion_key = "rope_percent"});
  }
  llama_stack(b, {.layer = nemotron_layer});
}

}  // namespace

extern const Architecture nemotron = {
    .name = "nemotron",
    .title = "Nemotron, Arcee or Jais 2",
    .model_types = {"nemotron", "arcee", "jais2"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.", "layers.{}.mlp.up_proj."},
    .without = {},
    .describe = nemotron_forward,
    .by_model_type_only = true,
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_starcoder2",
};

}  // namespace normscope::models::architectures
