#include <cstdint>
#include <vector>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// YOLOS adds positions again behind every layer but the last.
void later_positions(Builder& b, std::uint64_t layers) {
  if (static_cast<std::uint64_t>(b.layer()) >= layers) return;
  b.where("mid_position_embeddings", [&] { b.embedding("position embedding", ""); });
}

// The audio model classifies the mean of two tokens behind the final norm, which passes another norm.
void audio_classifier(Builder& b) {
  b.has_other_readers();
  b.norm("layernorm", "classifier input", Placement::inside);
  b.reads("classifier", "dense");
}

void vit_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  const bool averages = b.model_type() == "ijepa";  // has no class token
  b.embedding("class token", "embeddings.cls_token", averages ? Need::optional : Need::required);
  b.embedding("distillation token", "embeddings.distillation_token", Need::optional);
  b.embedding("mask token", "embeddings.mask_token", Need::optional);
  b.embedding("detection tokens", "embeddings.detection_tokens", Need::optional);
  b.embedding("position embedding", "embeddings.position_embeddings");
  b.input_map("patch embedding", "embeddings.patch_embeddings.projection");
  const std::vector<std::uint64_t> later = b.shape("encoder.mid_position_embeddings");
  b.each_layer("encoder.layer.{}.", [&] {
    vit_layer(b);
    if (!later.empty()) later_positions(b, later[0]);
  });
  bool listens = false;
  b.where("classifier.layernorm.", [&] { listens = true; });
  b.norm("layernorm", "final", listens ? Placement::post : Placement::pre);
  if (listens) return b.where("classifier.", [&] { audio_classifier(b); });
  if (averages) {
    b.reads_are_indirect();
    b.where("classifier", [&] {
      b.other("weight");
      b.other("bias");
    });
    return;
  }
  b.reads("pooler", "pooler.dense", 0, Need::optional);
  for (const char* head : {"classifier", "cls_classifier", "distillation_classifier",
                           "class_labels_classifier.layers.0", "bbox_predictor.layers.0"}) {
    b.where(head, [&] { b.reads("classifier", "", 0, Need::optional); });
  }
}

}  // namespace

extern const Architecture vit = {
    .name = "vit",
    .title = "ViT, DeiT or another model in its names",
    .model_types = {"vit", "deit", "ijepa", "vit_msn", "vit_mae", "vivit", "yolos",
                    "audio-spectrogram-transformer"},
    .signature = {"encoder.layer.{}.layernorm_before.", "encoder.layer.{}.attention.attention.query."},
    .without = {},
    .describe = vit_forward,
    .tower = Tower::vision,
    .harmless = {"num_frames", "tubelet_size", "video_size", "num_detection_tokens",
                 "use_mid_position_embeddings", "auxiliary_loss", "*_cost", "*_coefficient",
                 "frequency_stride", "time_stride", "num_mel_bins", "decoder_*", "mask_ratio",
                 "norm_pix_loss"},
    .centres_exactly = true,
    .rotates_exactly = true,
};

}  // namespace normscope::models::architectures
