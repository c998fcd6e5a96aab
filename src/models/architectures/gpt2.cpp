#include <optional>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// OpenAI's Conv1D stores [in, out], minGPT's Linear [out, in]. Square matrices are ambiguous, so the others
// decide for the whole file. What GPTQ and AWQ leave unpacked stays a Conv1D.
Layout stored_layout(const Builder& b) {
  if (b.packs_outputs_first()) return Layout::in_out;
  for (const char* name : {"h.0.attn.c_attn.weight", "h.0.mlp.c_fc.weight"}) {
    const std::vector<std::uint64_t> shape = b.shape(name);
    if (shape.size() == 2 && shape[0] != shape[1]) {
      return shape[0] > shape[1] ? Layout::out_in : Layout::in_out;
    }
  }
  return Layout::in_out;
}

LensBlocks gpt2_settings(Builder& b) {
  b.norms(
      {.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_epsilon"});
  b.scores({.scale = b.config().flag({"scale_attn_weights"}).value_or(true) ? std::nullopt
                                                                            : std::optional<double>(1.0),
            .divided_by_layer = b.config().flag({"scale_attn_by_inverse_layer_idx"}).value_or(false)});
  b.decoder({.activation = "gelu_new"});
  return LensBlocks::sequential;
}

void gpt2_forward(Builder& b) {
  gpt2_settings(b);
  b.layout(stored_layout(b));
  b.embedding("token embedding", "wte");
  b.embedding("position embedding", "wpe");
  b.each_layer("h.{}.", [&] {
    b.buffer("attn.bias");  // the causal mask
    b.buffer("attn.masked_bias");
    b.norm("ln_1", "attention input");
    const std::uint64_t attended = b.fused_attention("attn.c_attn");
    b.writes("attention out", "attn.c_proj", attended);
    b.norm("ln_2", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "mlp.c_fc");
    b.writes("mlp out", "mlp.c_proj", inner);
  });
  b.norm("ln_f", "final");
  b.layout(Layout::out_in);
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture gpt2 = {
    .name = "gpt2",
    .title = "GPT-2 or minGPT",
    .model_types = {"gpt2", "gpt-nano", "gpt-micro", "gpt-mini", "gopher-44m"},
    .signature = {"h.{}.ln_1.", "h.{}.attn.c_attn."},
    .without = {"tokens_embed."},
    .describe = gpt2_forward,
    .harmless = {"n_special", "predict_special_tokens"},
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_gpt2",
    .in_transformer_lens = gpt2_settings,
};

}  // namespace normscope::models::architectures
