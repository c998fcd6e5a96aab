#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// GLM-4 normalizes both the input and the output of a branch.
void glm_layer(Builder& b) {
  const bool sandwich = b.has("post_self_attn_layernorm.");
  llama_attention(b);
  if (sandwich) b.norm_of_branch("post_self_attn_layernorm", "attention output");
  b.norm("post_attention_layernorm", "mlp input");
  llama_mlp(b);
  if (sandwich) b.norm_of_branch("post_mlp_layernorm", "mlp output");
}

void glm_forward(Builder& b) {
  const std::string type = b.model_type();
  const bool sees = type != "glm" && type != "glm4" && !type.empty();
  b.norms({.kind = NormKind::rms,
           .placement = Placement::pre,
           .eps = sees ? 1e-5 : 1.5625e-7,
           .eps_key = "rms_norm_eps"});
  b.decoder({.activation = "silu"});
  if (b.model_type() == "glm_ocr_text") b.biases_by(Biased::attention, {});
  b.biases_by(Biased::attention_output, {});
  b.biases_by(Biased::norms_of_heads, {});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  if (sees) b.note("scores are bounded for text: the position of a part of an image is three numbers");
  b.rotary({.interleaved = true, .portion = type.starts_with("glm4v") ? 1.0 : 0.5, .sections = sees});
  llama_stack(b, {.layer = glm_layer});
}

}  // namespace

extern const Architecture glm = {
    .name = "glm",
    .title = "GLM-4 or GLM-4V",
    .model_types = {"glm", "glm4", "glm4v_text", "glm_ocr_text"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.", "layers.{}.mlp.gate_up_proj."},
    .without = {},
    .describe = glm_forward,
    .by_model_type_only = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_llama",
};

}  // namespace normscope::models::architectures
