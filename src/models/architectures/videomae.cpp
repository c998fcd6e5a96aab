#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// What classifies the mean of the stream behind a norm of its own, or the first patch behind the final norm,
// or the decoder of pretraining, which may read the stream itself.
void classifier(Builder& b) {
  bool averages = false;
  b.where("fc_norm.", [&] { averages = true; });
  if (averages) {
    b.where("fc_norm", [&] { b.norm_inside("", "classifier input", b.width()); });
    b.last_eps(1e-5, {});
  } else if (b.has("layernorm.")) {
    b.norm("layernorm", "final");
  } else {
    b.reads_the_stream();
  }
  b.where("classifier", [&] { b.reads("classifier", ""); });
  b.where("encoder_to_decoder", [&] { b.reads("decoder input", ""); });
}

// ViT in its names, with positions that are computed and no class token.
void videomae_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.input_map("patch embedding", "embeddings.patch_embeddings.projection");
  b.each_layer("encoder.layer.{}.", [&] { vit_layer(b); });
  classifier(b);
}

}  // namespace

extern const Architecture videomae = {
    .name = "videomae",
    .title = "VideoMAE",
    .model_types = {"videomae"},
    .signature = {"encoder.layer.{}.layernorm_before.", "encoder.layer.{}.attention.attention.q_bias",
                  "encoder.layer.{}.attention.attention.query."},
    .without = {"embeddings.position_embeddings", "embeddings.cls_token"},
    .describe = videomae_forward,
    .tower = Tower::vision,
    .harmless = {"num_frames", "tubelet_size", "use_mean_pooling", "decoder_*", "norm_pix_loss"},
};

}  // namespace normscope::models::architectures
