#include <cstdint>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// BERT's blocks with Transformer-XL's attention: biases of queries, which differ for content, positions and
// segments, and maps [in][head][out].
void xlnet_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.scores_not_modelled("relative positions and segments");
  b.heads().head_dim = b.config().count({"d_head"}).value_or(0);
  b.fold_axes();
  b.embedding("token embedding", "word_embedding");
  b.other("mask_emb");
  b.each_layer("layer.{}.", [&] {
    b.within("rel_attn.", [&] {
      for (const char* name : {"r", "r_r_bias", "r_s_bias", "r_w_bias", "seg_embed"}) b.other(name);
      b.layout(Layout::in_out);
      const std::uint64_t attended = b.attention("q", "k", "v");
      b.layout(Layout::out_in);
      b.writes("attention out", "o", attended);
      b.norm("layer_norm", "attention output");
    });
    b.within("ff.", [&] {
      const std::uint64_t inner = b.reads("mlp in", "layer_1");
      b.writes("mlp out", "layer_2", inner);
      b.norm("layer_norm", "mlp output");
    });
  });
  b.unembedding({"lm_loss"}, true);
}

}  // namespace

extern const Architecture xlnet = {
    .name = "xlnet",
    .title = "XLNet",
    .model_types = {"xlnet"},
    .signature = {"layer.{}.rel_attn.layer_norm.", "layer.{}.rel_attn.seg_embed", "layer.{}.ff.layer_norm."},
    .without = {},
    .describe = xlnet_forward,
    .harmless = {"attn_type", "bi_data", "clamp_len", "d_head", "d_inner", "end_n_top", "ff_activation",
                 "mem_len", "reuse_len", "same_length", "start_n_top", "untie_r", "use_mems*"},
};

}  // namespace normscope::models::architectures
