#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Some layers attend to the image in place of the tokens before; without an image they do nothing. Learned
// numbers multiply their branches.
void mllama_layer(Builder& b) {
  if (!b.has("cross_attn.")) {
    llama_attention(b);
    b.norm("post_attention_layernorm", "mlp input");
    return llama_mlp(b);
  }
  b.norm("input_layernorm", "cross-attention input");
  const std::uint64_t attended =
      b.cross_attention("cross_attn.q_proj", "cross_attn.k_proj", "cross_attn.v_proj");
  norms_of_queries_and_keys(b, "cross_attn.q_norm", "cross_attn.k_norm");
  b.writes("cross-attention out", "cross_attn.o_proj", attended);
  branch_scale(b, "cross_attn_attn_gate");
  b.norm("post_attention_layernorm", "mlp input");
  llama_mlp(b);
  branch_scale(b, "cross_attn_mlp_gate");
}

void mllama_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.note("layers of cross-attention are left out of the forward pass of a text without an image");
  b.rotary({.theta = 5e5});
  b.biases_by(Biased::attention, {});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  llama_stack(b, {.layer = mllama_layer});
}

}  // namespace

extern const Architecture mllama = {
    .name = "mllama",
    .title = "Llama 3.2 with vision",
    .model_types = {"mllama", "mllama_text_model"},
    .signature = {"layers.{}.cross_attn.q_proj.", "layers.{}.input_layernorm.", "layers.{}.mlp.gate_proj."},
    .without = {},
    .describe = mllama_forward,
    .harmless = {"cross_attention_layers"},
    .attends_to_towers = true,
};

}  // namespace normscope::models::architectures
