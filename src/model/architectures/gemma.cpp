#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "architecture.hpp"
#include "builder.hpp"
#include "llama_block.hpp"

namespace normscope::model::architectures {

namespace {

// A positive number of the configuration; the published default (0 for none) if the key is missing, and 0 if
// it is null.
std::optional<double> stated(Builder& b, const char* key, double published) {
  const std::optional<double> value = b.config().number_or_false({key});
  if (value && *value > 0.0) return value;
  if (value || b.config().states({key}) || published == 0.0) return {};
  b.note(fmt::format("{} {} is assumed, the published default: no configuration states it", key, published));
  return published;
}

void gemma_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .gain_offset = 1.0, .eps = 1e-6});
  b.decoder({.activation = "gelu_pytorch_tanh", .embedding_times_root = true});
  const bool third = b.has("layers.0.self_attn.q_norm.");
  const bool second = !third && b.has("layers.0.pre_feedforward_layernorm.");
  b.grouped_queries();
  b.head_dim_from("layers.0.self_attn.q_norm");
  b.rotary({.theta = third ? 1e6 : 1e4, .has_local_theta = third});
  if (second || third) b.windows({.period = third ? std::uint64_t{6} : std::uint64_t{2}});
  const std::optional<double> scalar = stated(b, "query_pre_attn_scalar", second || third ? 256.0 : 0.0);
  b.scores({.scale = scalar ? std::optional(1.0 / std::sqrt(*scalar)) : std::nullopt,
            .soft_cap = stated(b, "attn_logit_softcapping", second ? 50.0 : 0.0).value_or(0.0)});
  b.logits(1.0, stated(b, "final_logit_softcapping", second ? 30.0 : 0.0).value_or(0.0));
  // Gemma 2 and 3 normalize both the input and the output of a branch. There post_attention_layernorm is the
  // latter; in Gemma 1, as in Llama, it is the norm that the MLP reads.
  const bool sandwich = second || third || b.has("layers.0.pre_feedforward_layernorm.");
  b.embedding("token embedding", "embed_tokens");
  b.each_layer("layers.{}.", [&] {
    llama_attention(b);
    if (sandwich) b.norm_of_branch("post_attention_layernorm", "attention output");
    b.norm(sandwich ? "pre_feedforward_layernorm" : "post_attention_layernorm", "mlp input");
    gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    if (sandwich) b.norm_of_branch("post_feedforward_layernorm", "mlp output");
  });
  b.norm("norm", "final");
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture gemma = {
    .name = "gemma",
    .title = "Gemma",
    .model_types = {"gemma", "gemma2", "gemma3", "gemma3_text"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.pre_feedforward_layernorm.",
                  "layers.{}.post_feedforward_layernorm."},
    .without = {},
    .describe = gemma_forward,
    .harmless = {"sliding_window_size"},
};

}  // namespace normscope::model::architectures
