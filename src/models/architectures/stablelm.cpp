#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

LensBlocks blocks_of(const Builder& b) {
  return b.config().flag({"use_parallel_residual"}).value_or(false) ? LensBlocks::parallel
                                                                    : LensBlocks::sequential;
}

// Norms of queries and keys are one for each head.
void norms_of_each_head(Builder& b, const std::string& name, const char* role, const char* part,
                        std::uint64_t heads) {
  for (std::uint64_t head = 0; head < heads; ++head) {
    b.norm_of_head(name + ".norms." + std::to_string(head), role, part, head);
  }
}

void stablelm_layer(Builder& b) {
  llama_attention(b);
  b.rotary_buffer("self_attn.rotary_emb.inv_freq");
  if (b.config().flag({"qk_layernorm"}).value_or(b.has("self_attn.q_layernorm."))) {
    norms_of_each_head(b, "self_attn.q_layernorm", "query norm", "query", b.heads().heads);
    norms_of_each_head(b, "self_attn.k_layernorm", "key norm", "key", b.heads().key_value_heads);
  }
  if (blocks_of(b) == LensBlocks::sequential) {
    b.norm("post_attention_layernorm", "mlp input");
  }
  llama_mlp(b);
}

// Llama's names over LayerNorms with biases; a quarter of each head's coordinates rotate.
LensBlocks stablelm_settings(Builder& b) {
  b.norms({.kind = NormKind::layer,
           .placement = Placement::pre,
           .eps = 1e-5,
           .eps_key = b.model_type() == "stablelm_epoch" ? "norm_eps" : "layer_norm_eps"});
  b.decoder({.activation = "silu"});
  if (b.model_type() == "stablelm") b.biases_by(Biased::attention, {"use_qkv_bias"});
  b.biases_by(Biased::attention_output, {});
  b.biases_by(Biased::mlps, {});
  b.biases_by(Biased::norms_of_heads, {"qk_layernorm"});
  b.grouped_queries();
  b.rotary({.portion = 0.25, .other_portion_key = "rope_pct"});
  return blocks_of(b);
}

void stablelm_forward(Builder& b) {
  stablelm_settings(b);
  llama_stack(b, {.layer = stablelm_layer});
}

}  // namespace

extern const Architecture stablelm = {
    .name = "stablelm",
    .title = "StableLM",
    .model_types = {"stablelm", "stablelm_epoch"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.", "layers.{}.mlp.gate_proj."},
    .without = {},
    .describe = stablelm_forward,
    .harmless = {"auto_map"},  // published with code of its own before it was part of transformers
    .by_model_type_only = true,
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_stablelm",
    .in_transformer_lens = stablelm_settings,
};

}  // namespace normscope::models::architectures
