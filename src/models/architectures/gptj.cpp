#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

LensBlocks gptj_settings(Builder& b) {
  b.biases_by(Biased::attention, {});
  b.norms(
      {.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_epsilon"});
  b.decoder({.activation = "gelu_new"});
  b.rotary({.interleaved = true,
            .is_fixed = true,
            .dims = static_cast<std::size_t>(b.config().count({"rotary_dim"}).value_or(64))});
  return LensBlocks::parallel;
}

// Attention and MLP both read the single norm of a layer. CodeGen has one matrix in four blocks (of the four
// devices it was trained on), each with queries, values and keys.
void gptj_forward(Builder& b) {
  gptj_settings(b);
  b.embedding("token embedding", "wte");
  b.each_layer("h.{}.", [&] {
    for (const char* name : {"attn.bias", "attn.masked_bias", "attn.causal_mask", "attn.embed_positions"})
      b.buffer(name);
    b.norm("ln_1", "attention input");
    const std::uint64_t attended =
        b.has("attn.qkv_proj.") ? b.fused_attention("attn.qkv_proj", {.blocks = 4, .values_first = true})
                                : b.attention("attn.q_proj", "attn.k_proj", "attn.v_proj");
    b.writes("attention out", "attn.out_proj", attended);
    const std::uint64_t inner = b.reads("mlp in", "mlp.fc_in");
    b.writes("mlp out", "mlp.fc_out", inner);
  });
  b.norm("ln_f", "final");
  b.unembedding({"lm_head"}, false);
}

}  // namespace

extern const Architecture gptj = {
    .name = "gptj",
    .title = "GPT-J or CodeGen",
    .model_types = {"gptj", "codegen"},
    .signature = {"h.{}.attn.out_proj.", "h.{}.ln_1.", "h.{}.mlp.fc_in."},
    .without = {},
    .describe = gptj_forward,
    .harmless = {"rotary", "scale_attn_weights"},
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_transformer_lens = gptj_settings,
};

}  // namespace normscope::models::architectures
