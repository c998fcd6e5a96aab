#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// What stands before a stack depends on the task: text with computed positions, samples, or a spectrogram.
void text_or_else(Builder& b, std::uint64_t width) {
  b.new_stream();
  b.stream(width);
  if (b.has("prenet.embed_tokens.")) {
    b.embedding("token embedding", "prenet.embed_tokens");
    b.other("prenet.encode_positions.alpha");
  } else if (b.has("prenet.feature_encoder.")) {
    speech_features(b, "prenet.feature_encoder", b.has("prenet.feature_encoder.conv_layers.1.layer_norm."));
    speech_projection(b, "prenet.feature_projection", width);
    speech_positions(b, "prenet.pos_conv_embed");
    b.other("prenet.masked_spec_embed");  // replaces inputs in training
  } else {
    b.partial_input("prenet.");
  }
}

// wav2vec 2.0's encoder and BART's decoder, with norms behind the additions.
void speecht5_forward(Builder& b) {
  const std::uint64_t width = b.width();
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-5, .eps_key = "layer_norm_eps"});
  b.stack("encoder");
  b.within("encoder.", [&] {
    text_or_else(b, width);
    b.where("wrapped_encoder.", [&] {
      b.heads() = {.heads = b.config().count({"encoder_attention_heads"}).value_or(0)};
      b.scores_not_modelled("relative positions");
      b.norm("layer_norm", "embedding");
      b.other("embed_positions.pe_k.weight");
      b.each_layer("layers.{}.", [&] { speech_layer(b, false); }, {"encoder_layers"});
    });
  });
  b.remember_for_cross_attention();
  b.stack("decoder");
  b.scores_not_modelled({});
  b.within("decoder.", [&] {
    text_or_else(b, width);
    b.where("wrapped_decoder.", [&] {
      bart_decoder_layers(
          b, {.mlp_in = "feed_forward.intermediate_dense", .mlp_out = "feed_forward.output_dense"});
    });
  });
  bool speaks = false;
  b.where("speech_decoder_postnet.", [&] { speaks = true; });
  if (speaks) return b.reads_are_indirect();
  b.where("text_decoder_postnet.", [&] { b.unembedding({"lm_head"}, true); });
  if (!b.has("text_decoder_postnet.")) b.unembedding({}, true);
}

}  // namespace

extern const Architecture speecht5 = {
    .name = "speecht5",
    .title = "SpeechT5",
    .model_types = {"speecht5"},
    .signature = {"encoder.wrapped_encoder.layers.{}.", "decoder.wrapped_decoder.layers.{}."},
    .without = {},
    .describe = speecht5_forward,
    .harmless = {"apply_spec_augment", "conv_*", "decoder_*", "encoder_*", "feat_*", "guided_attention_*",
                 "mask_*", "max_speech_positions", "max_text_positions", "num_conv_pos_*",
                 "num_feat_extract_layers", "num_mel_bins", "reduction_factor", "scale_embedding",
                 "speaker_embedding_dim", "speech_decoder_*", "use_guided_attention_loss"},
};

}  // namespace normscope::models::architectures
