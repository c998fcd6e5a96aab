#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The decoders of fairseq, with norms before branches; XGLM computes its positions.
void biogpt_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = ""});
  if (const auto heads = b.config().count({"attention_heads"})) b.heads().heads = *heads;
  b.embedding("token embedding", "embed_tokens");
  b.embedding("position embedding", "embed_positions", Need::optional);
  b.buffer("embed_positions.weights");
  b.each_layer("layers.{}.", [&] {
    b.norm("self_attn_layer_norm", "attention input");
    const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.writes("attention out", "self_attn.out_proj", attended);
    b.norm("final_layer_norm", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "fc1");
    b.writes("mlp out", "fc2", inner);
  });
  b.norm("layer_norm", "final");
  b.unembedding({"output_projection", "lm_head"}, true);
}

}  // namespace

extern const Architecture biogpt = {
    .name = "biogpt",
    .title = "BioGPT or XGLM",
    .model_types = {"biogpt", "xglm"},
    .signature = {"layers.{}.self_attn_layer_norm.", "layers.{}.fc1.", "layer_norm."},
    .without = {"layers.{}.encoder_attn.", "encoder."},
    .describe = biogpt_forward,
    .harmless = {"scale_embedding"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
