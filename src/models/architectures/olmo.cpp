#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Llama with LayerNorms that have neither gain nor bias.
void olmo_forward(Builder& b) {
  b.norms(
      {.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "", .gainless = true});
  b.decoder({.activation = "silu"});
  b.scores({.clip = b.config().number({"clip_qkv"})});
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  b.rotary({});
  llama_stack(b);
}

}  // namespace

extern const Architecture olmo = {
    .name = "olmo",
    .title = "OLMo",
    .model_types = {"olmo"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.mlp.gate_proj."},
    .without = {"layers.{}.input_layernorm."},
    .describe = olmo_forward,
    .by_model_type_only = true,
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_olmo",
};

}  // namespace normscope::models::architectures
