#include <optional>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// GPT-2's names; one key-value head behind all queries, or heads with a key and a value each.
void gpt_bigcode_forward(Builder& b) {
  b.norms(
      {.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_epsilon"});
  b.decoder({.activation = "gelu_pytorch_tanh"});
  const bool one_key = b.config().flag({"multi_query"}).value_or(true);
  b.heads().key_value_heads = one_key ? 1 : b.heads().heads;
  if (one_key) b.grouped_queries();
  b.scores({.scale = b.config().flag({"scale_attn_weights"}).value_or(true) ? std::nullopt
                                                                            : std::optional<double>(1.0)});
  b.embedding("token embedding", "wte");
  b.embedding("position embedding", "wpe");
  b.each_layer("h.{}.", [&] {
    b.buffer("attn.bias");  // the causal mask
    b.norm("ln_1", "attention input");
    const std::uint64_t attended =
        b.fused_attention("attn.c_attn", {.blocks = one_key ? std::uint64_t{1} : std::uint64_t{0}});
    b.writes("attention out", "attn.c_proj", attended);
    b.norm("ln_2", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "mlp.c_fc");
    b.writes("mlp out", "mlp.c_proj", inner);
  });
  b.norm("ln_f", "final");
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture gpt_bigcode = {
    .name = "gpt_bigcode",
    .title = "GPTBigCode (StarCoder, SantaCoder)",
    .model_types = {"gpt_bigcode"},
    .signature = {"h.{}.ln_1.", "h.{}.attn.c_attn."},
    .without = {},
    .describe = gpt_bigcode_forward,
    .harmless = {"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "inference_runner",
                 "max_batch_size", "pad_key_length", "pre_allocate_kv_cache", "validate_runner_input"},
    .by_model_type_only = true,
    .centres_exactly = true,
    .rotates_exactly = true,
};

}  // namespace normscope::models::architectures
