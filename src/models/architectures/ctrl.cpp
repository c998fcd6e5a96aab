#include <cstdint>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// GPT-2's blocks by other names. The embedding is multiplied by the root of the width, and positions are
// computed. Norms of layers have an eps of their own.
void ctrl_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-6, .eps_key = ""});
  b.embedding("token embedding", "w");
  b.writes_are_indirect();
  b.each_layer("h.{}.", [&] {
    b.norm("layernorm1", "attention input");
    b.within("multi_head_attention.", [&] {
      const std::uint64_t attended = b.attention("Wq", "Wk", "Wv");
      b.writes("attention out", "dense", attended);
    });
    b.norm("layernorm2", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "ffn.0");
    b.writes("mlp out", "ffn.2", inner);
  });
  b.norm("layernorm", "final");
  b.last_eps(1e-6, {"layer_norm_epsilon"});
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture ctrl = {
    .name = "ctrl",
    .title = "CTRL",
    .model_types = {"ctrl"},
    .signature = {"h.{}.multi_head_attention.Wq.", "h.{}.layernorm1.", "h.{}.ffn.0.", "layernorm."},
    .without = {},
    .describe = ctrl_forward,
    .harmless = {"dff"},
};

}  // namespace normscope::models::architectures
