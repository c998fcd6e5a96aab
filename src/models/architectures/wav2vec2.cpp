#include <cstdint>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Norms outside the encoder that the configuration's eps does not reach.
constexpr double kWav2vec2Eps = 1e-5;

// Convolutions of the samples, each with a norm of its channels and an activation behind it.
void feature_extractor(Builder& b, bool each) {
  b.each_part("feature_extractor.conv_layers.{}.", [&] {
    b.other("conv.weight");
    b.other("conv.bias");
    if (!b.has("layer_norm.")) return;
    if (!each) {
      b.note(
          "feature_extractor.conv_layers.0.layer_norm normalizes each channel over all positions "
          "(GroupNorm): "
          "no norm of feature vectors, and not listed");
      b.other("layer_norm.weight");
      b.other("layer_norm.bias");
      return;
    }
    b.norm_of_outputs("layer_norm", "convolution output", {.role = "convolution", .map = "conv"});
    b.last_eps(kWav2vec2Eps, {});
    b.reads_are_indirect();
  });
}

void wav2vec2_layer(Builder& b, bool before) {
  if (before) b.norm("layer_norm", "attention input");
  const std::uint64_t attended = b.attention("attention.q_proj", "attention.k_proj", "attention.v_proj");
  b.writes("attention out", "attention.out_proj", attended);
  b.norm(before ? "final_layer_norm" : "layer_norm", before ? "mlp input" : "attention output");
  const std::uint64_t inner = b.reads("mlp in", "feed_forward.intermediate_dense");
  b.writes("mlp out", "feed_forward.output_dense", inner);
  if (!before) b.norm("final_layer_norm", "mlp output");
  if (!b.has("adapter_layer.")) return;
  b.norm("adapter_layer.norm", "adapter input");
  b.last_eps(kWav2vec2Eps, {});
  const std::uint64_t narrow = b.reads("adapter in", "adapter_layer.linear_1");
  b.writes("adapter out", "adapter_layer.linear_2", narrow);
}

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
  const std::uint64_t width = b.width();
  b.norms({.kind = NormKind::layer,
           .placement = before ? Placement::pre : Placement::post,
           .eps = 1e-5,
           .eps_key = "layer_norm_eps"});
  b.other("masked_spec_embed");  // replaces inputs in training
  feature_extractor(b, each);
  b.new_stream();
  b.stream(0);
  b.writes_are_indirect();
  if (b.has("feature_projection.layer_norm.")) {
    b.norm("feature_projection.layer_norm", "projection input", Placement::pre);
    b.leads_over("feature projection", "feature_projection.projection", width);
  } else {
    b.new_stream();
    b.stream(width);
    b.input_map("feature projection", "feature_projection.projection");
  }
  b.partial_input("encoder.pos_conv_embed.");  // behind an activation
  if (!before) b.norm("encoder.layer_norm", "embedding");
  b.each_layer("encoder.layers.{}.", [&] { wav2vec2_layer(b, before); });
  if (before) b.norm("encoder.layer_norm", "final");
  const bool adapted = config.flag({"add_adapter"}).value_or(b.has("adapter."));
  const bool mixed = config.flag({"use_weighted_layer_sum"}).value_or(false);
  heads(b, !adapted && !mixed);
}

}  // namespace

extern const Architecture wav2vec2 = {
    .name = "wav2vec2",
    .title = "wav2vec 2.0 or HuBERT",
    .model_types = {"wav2vec2", "hubert", "unispeech", "unispeech-sat"},
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
                 "conv_stride",
                 "ctc_*",
                 "diversity_loss_weight",
                 "feat_extract_*",
                 "feat_proj_layer_norm",
                 "mask_*",
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
