#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// LayerNorm stores "gamma", RMSNorm and ScaleNorm "g", of which the latter has one number. Neither of these
// two has an eps.
NormStyle style(const Builder& b) {
  if (b.has("attn_layers.layers.0.0.0.gamma")) {
    return {.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5};
  }
  return {.kind = NormKind::rms, .placement = Placement::pre, .eps = 0.0, .one_gain = true};
}

// Sublayers are numbered through: norms, then attention or an MLP.
void sublayer(Builder& b) {
  const bool attends = b.has("1.to_q.");
  b.norm("0.0", attends ? "attention input" : "mlp input");
  if (attends) {
    const std::uint64_t attended = b.attention("1.to_q", "1.to_k", "1.to_v");
    b.writes("attention out", "1.to_out", attended);
    return;
  }
  const std::uint64_t inner = b.reads("mlp in", "1.ff.0.0");
  b.writes("mlp out", "1.ff.3", inner);
}

void x_transformers_forward(Builder& b) {
  b.norms(style(b));
  b.scores_not_modelled("options of attention that no tensor shows, such as attn_qk_norm");
  b.embedding("token embedding", "token_emb.emb");
  b.embedding("position embedding", "pos_emb.emb", Need::optional);
  b.each_layer("attn_layers.layers.{}.", [&] { sublayer(b); });
  b.norm("attn_layers.final_norm", "final");
  b.unembedding({"to_logits"}, true);
}

}  // namespace

extern const Architecture x_transformers = {
    .name = "x_transformers",
    .title = "a decoder or encoder of x-transformers",
    .model_types = {},
    .signature = {"attn_layers.layers.{}.{}.{}.", "token_emb.emb.", "attn_layers.final_norm.",
                  "attn_layers.layers.{}.{}.to_q."},
    .without = {"attn_layers.layers.{}.{}.mem_k"},
    .describe = x_transformers_forward,
};

}  // namespace normscope::models::architectures
