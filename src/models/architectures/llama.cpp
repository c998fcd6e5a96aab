#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void llama_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6, .eps_key = "rms_norm_eps"});
  b.decoder({.activation = "silu"});
  const std::string type = b.model_type();
  if (type == "smollm3") {
    b.rotary({.theta = 2e6, .still_every = 4});
  } else {
    b.rotary({});
  }
  if (type == "mistral") b.windows({.kinds_key = ""});
  if (type == "ministral") b.windows({});
  if (type == "qwen2" || type == "qwen3" || type == "smollm3") b.windows({.must_be_enabled = true});
  b.grouped_queries();
  b.head_dim_from("layers.0.self_attn.q_norm");
  if (b.config().model_types().empty()) {
    b.note("without a configuration this could be Gemma 1, which has the same tensors but stores gain - 1");
  }
  llama_stack(b);
}

}  // namespace

extern const Architecture llama = {
    .name = "llama",
    .title = "Llama, Mistral or Qwen",
    .model_types = {"llama", "mistral", "ministral", "qwen2", "qwen3", "smollm3", "seed_oss"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.",
                  "layers.{}.post_attention_layernorm.", "layers.{}.mlp.gate_proj."},
    .without = {"layers.{}.pre_feedforward_layernorm."},
    .describe = llama_forward,
    .harmless = {"attention_out_bias"},
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_llama",
    .in_transformer_lens = true,
};

}  // namespace normscope::models::architectures
