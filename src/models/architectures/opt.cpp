#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Only OPT-350m normalizes after the sum; it has no norm at the end.
bool normalizes_before(const Builder& b, bool otherwise) {
  return b.config().flag({"do_layer_norm_before"}).value_or(otherwise);
}

void opt_settings(Builder& b, bool before) {
  b.norms({.kind = NormKind::layer,
           .placement = before ? Placement::pre : Placement::post,
           .eps = 1e-5,
           .eps_key = ""});
  b.decoder({.activation = "relu", .first_position = 2});
}

LensBlocks opt_in_transformer_lens(Builder& b) {
  if (!normalizes_before(b, true)) b.scores_not_modelled("do_layer_norm_before: false");
  opt_settings(b, true);
  return LensBlocks::sequential;
}

void opt_forward(Builder& b) {
  const bool before = normalizes_before(b, b.has("decoder.final_layer_norm."));
  opt_settings(b, before);
  b.within("decoder.", [&] {
    const bool projected = b.has("project_in.");
    const std::uint64_t width = b.width();
    if (projected) b.stream(0);
    b.embedding("token embedding", "embed_tokens");
    if (projected) b.leads_over("embedding projection", "project_in", width);
    b.embedding("position embedding", "embed_positions");
    b.each_layer("layers.{}.", [&] {
      if (before) b.norm("self_attn_layer_norm", "attention input");
      const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
      b.writes("attention out", "self_attn.out_proj", attended);
      if (!before) b.norm("self_attn_layer_norm", "attention output");
      if (before) b.norm("final_layer_norm", "mlp input");
      const std::uint64_t inner = b.reads("mlp in", "fc1");
      b.writes("mlp out", "fc2", inner);
      if (!before) b.norm("final_layer_norm", "mlp output");
    });
    if (before) b.norm("final_layer_norm", "final");
    if (b.has("project_out.")) b.reads("output projection", "project_out");
    b.unembedding({"lm_head"}, true, !b.has("project_out."));
  });
}

}  // namespace

extern const Architecture opt = {
    .name = "opt",
    .title = "OPT",
    .model_types = {"opt"},
    .signature = {"decoder.layers.{}.self_attn_layer_norm.", "decoder.layers.{}.fc1."},
    .without = {"decoder.layers.{}.encoder_attn."},
    .describe = opt_forward,
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_transformer_lens = opt_in_transformer_lens,
};

}  // namespace normscope::models::architectures
