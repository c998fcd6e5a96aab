#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Experts of queries, each with an output map of its own, share keys and values.
void experts_of_attention(Builder& b) {
  b.reads("key and value", "kv_proj");
  b.within("experts.", [&] {
    b.reads("router", "router.layer");
    b.each_expert("input_linear.weight", [&] {
      const std::uint64_t inner = b.reads("mixer in", "input_linear.weight");
      b.writes("mixer out", "output_linear.weight", inner);
    });
    b.embedding("bias of the experts", "bias");
  });
}

void jetmoe_layer(Builder& b) {
  b.norm("input_layernorm", "attention input");
  b.within("self_attention.", [&] { experts_of_attention(b); });
  b.norm("post_attention_layernorm", "mlp input");
  b.within("mlp.", [&] {
    b.reads("router", "router.layer");
    b.each_expert("input_linear.weight", [&] {
      const std::uint64_t inner = b.reads_parts({"mlp gate", "mlp in"}, "input_linear.weight");
      b.writes("mlp out", "output_linear.weight", inner);
    });
    b.embedding("bias of the experts", "bias");
  });
}

// The norms of layers have the default eps of their class.
void jetmoe_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6, .eps_key = ""});
  b.note("each token chooses the heads that attend, so no head's scores are bounded");
  b.embedding("token embedding", "embed_tokens");
  b.each_layer("layers.{}.", [&] { jetmoe_layer(b); });
  b.norm("norm", "final");
  b.last_eps(1e-6, {"rms_norm_eps"});
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture jetmoe = {
    .name = "jetmoe",
    .title = "JetMoE",
    .model_types = {"jetmoe"},
    .signature = {"layers.{}.self_attention.kv_proj.", "layers.{}.input_layernorm.",
                  "layers.{}.post_attention_layernorm.", "layers.{}.mlp.router."},
    .without = {},
    .describe = jetmoe_forward,
    .harmless = {"aux_loss_coef", "kv_channels"},
};

}  // namespace normscope::models::architectures
