#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Llama with one matrix for queries, keys and values, and one for the MLP's gate and input.
void phi3_layer(Builder& b) {
  b.norm("input_layernorm", "attention input");
  const std::uint64_t attended = b.fused_attention("self_attn.qkv_proj");
  b.rotary_buffer("self_attn.rotary_emb.inv_freq");
  b.writes("attention out", "self_attn.o_proj", attended);
  b.norm("post_attention_layernorm", "mlp input");
  llama_mlp(b);
}

void phi3_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.decoder({.activation = "silu"});
  b.biases_by(Biased::attention, {});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  b.rotary({.portion = 1.0});
  b.windows({.kinds_key = ""});
  llama_stack(b, {.layer = phi3_layer});
}

}  // namespace

extern const Architecture phi3 = {
    .name = "phi3",
    .title = "Phi-3",
    .model_types = {"phi3"},
    .signature = {"layers.{}.self_attn.qkv_proj.", "layers.{}.input_layernorm.",
                  "layers.{}.mlp.gate_up_proj."},
    .without = {},
    .describe = phi3_forward,
    .harmless = {"auto_map"},  // published with code of its own before it was part of transformers,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_phi3",
};

}  // namespace normscope::models::architectures
