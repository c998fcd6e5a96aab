#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// What reads the last norm, by the task of the model. An adapter, or a mean over layers, may be in between.
void heads(Builder& b, bool direct) {
  bool speech = false;
  b.where("lm_head.", [&] { speech = true; });
  if (!direct) b.reads_are_indirect();
  if (speech) return b.unembedding({"lm_head"}, false, direct);
  if (!direct) return;
  for (const char* name : {"project_hid", "projector"}) {
    b.where(name, [&] { b.reads("projection", "", 0, Need::optional); });
  }
}

void wav2vec2_forward(Builder& b) {
  const Config& config = b.config();
  const bool each = b.has("feature_extractor.conv_layers.1.layer_norm.");
  const bool is_typed = !config.model_types().empty();
  const bool before = config.flag({"do_stable_layer_norm"}).value_or(each && !is_typed);
  if (!is_typed && !config.has({"do_stable_layer_norm"})) {
    b.note(before ? "norms before branches are assumed: no configuration states do_stable_layer_norm"
                  : "norms behind branches are assumed: no configuration states do_stable_layer_norm");
  }
  if (b.model_type() == "wavlm") b.scores_not_modelled("relative positions, gated by what the heads read");
  const std::uint64_t width = b.width();
  b.norms({.kind = NormKind::layer,
           .placement = before ? Placement::pre : Placement::post,
           .eps = 1e-5,
           .eps_key = "layer_norm_eps"});
  b.other("masked_spec_embed");  // replaces inputs in training
  speech_features(b, "feature_extractor", each);
  speech_projection(b, "feature_projection", width);
  speech_positions(b, "encoder.pos_conv_embed");
  if (!before) b.norm("encoder.layer_norm", "embedding");
  b.each_layer("encoder.layers.{}.", [&] { speech_layer(b, before); });
  if (before) b.norm("encoder.layer_norm", "final");
  const bool adapted = config.flag({"add_adapter"}).value_or(b.has("adapter."));
  const bool mixed = config.flag({"use_weighted_layer_sum"}).value_or(false);
  heads(b, !adapted && !mixed);
}

}  // namespace

extern const Architecture wav2vec2 = {
    .name = "wav2vec2",
    .title = "wav2vec 2.0, HuBERT, WavLM or data2vec-audio",
    .model_types = {"wav2vec2", "hubert", "unispeech", "unispeech-sat", "wavlm", "data2vec-audio"},
    .signature = {"encoder.layers.{}.feed_forward.intermediate_dense.",
                  "feature_extractor.conv_layers.{}.conv.", "encoder.layers.{}.attention.q_proj.",
                  "encoder.pos_conv_embed.conv."},
    .without = {"encoder.layers.{}.attention.gru_rel_pos_linear."},
    .describe = wav2vec2_forward,
    .harmless = {"adapter_*",
                 "apply_spec_augment",
                 "codevector_dim",
                 "contrastive_*",
                 "conv_bias",
                 "conv_dim",
                 "conv_kernel",
                 "conv_pos_kernel_size",
                 "max_bucket_distance",
                 "num_buckets",
                 "conv_stride",
                 "ctc_*",
                 "diversity_loss_weight",
                 "feat_extract_*",
                 "feat_proj_layer_norm",
                 "freeze_feat_extract_train",
                 "mask_*",
                 "no_mask_*",
                 "num_adapter_layers",
                 "num_clusters",
                 "num_codevector*",
                 "num_conv_pos_*",
                 "num_ctc_classes",
                 "num_feat_extract_layers",
                 "num_negatives",
                 "output_hidden_size",
                 "proj_codevector_dim",
                 "replace_prob",
                 "tdnn_*",
                 "tokenizer_class",
                 "xvector_output_dim"},
};

}  // namespace normscope::models::architectures
