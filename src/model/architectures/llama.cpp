#include "architecture.hpp"
#include "builder.hpp"
#include "llama_block.hpp"

namespace normscope::model::architectures {

namespace {

void forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6});
  b.rotary({});
  b.grouped_queries();
  b.head_dim_from("layers.0.self_attn.q_norm");
  if (b.config().model_types().empty()) {
    b.note("without a configuration this could be Gemma 1, which has the same tensors but stores gain - 1");
  }
  b.embedding("token embedding", "embed_tokens");
  b.each_layer("layers.{}.", [&] {
    llama_attention(b);
    b.rotary_buffer("self_attn.rotary_emb.inv_freq");
    b.norm("post_attention_layernorm", "mlp input");
    gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
  });
  b.norm("norm", "final");
  b.unembedding({"lm_head"}, false);
}

}  // namespace

extern const Architecture llama = {
    .name = "llama",
    .title = "Llama, Mistral or Qwen",
    .model_types = {"llama", "mistral", "qwen2", "qwen3"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.",
                  "layers.{}.post_attention_layernorm.", "layers.{}.mlp.gate_proj."},
    .without = {"layers.{}.pre_feedforward_layernorm."},
    .describe = forward,
};

}  // namespace normscope::model::architectures
