#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// BART's layers with norms before their branches, over two convolutions of a spectrogram.
void whisper_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = ""});
  b.biases_by(Biased::keys, {});
  b.stack("encoder");
  b.within("encoder.", [&] {
    b.partial_input("conv1.");
    b.partial_input("conv2.");
    b.embedding("position embedding", "embed_positions");
    bart_encoder_layers(b, {.before = true});
    b.norm("layer_norm", "final");
  });
  b.remember_for_cross_attention();
  b.new_stream();
  b.stack("decoder");
  b.within("decoder.", [&] {
    b.embedding("token embedding", "embed_tokens");
    b.embedding("position embedding", "embed_positions");
    bart_decoder_layers(b, {.before = true});
    b.norm("layer_norm", "final");
    b.unembedding({"proj_out"}, true);
  });
}

}  // namespace

extern const Architecture whisper = {
    .name = "whisper",
    .title = "Whisper",
    .model_types = {"whisper"},
    .signature = {"encoder.layers.{}.self_attn_layer_norm.", "decoder.layers.{}.encoder_attn_layer_norm.",
                  "encoder.conv1."},
    .without = {},
    .describe = whisper_forward,
    .harmless = {"encoder_*", "decoder_*", "scale_embedding", "apply_spec_augment", "mask_*",
                 "max_source_positions", "max_target_positions", "median_filter_width", "num_mel_bins",
                 "use_weighted_layer_sum", "alignment_heads", "forced_decoder_ids", "lang_ids"},
};

}  // namespace normscope::models::architectures
