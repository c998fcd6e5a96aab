#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Whisper's encoder beside a text model. Its final norm is read by a projector, several positions at a time
// (Voxtral) or one (Qwen2-Audio).
void whisper_encoder_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = ""});
  b.biases_by(Biased::keys, {});
  b.stack("audio");
  b.partial_input("conv1.");
  b.partial_input("conv2.");
  b.embedding("position embedding", "embed_positions");
  bart_encoder_layers(b, {.before = true});
  b.norm("layer_norm", "final");
  b.where("multi_modal_projector.linear_1.", [&] { b.reads_are_indirect(); });
  b.where("multi_modal_projector.linear", [&] { b.reads("projection", "", 0, Need::optional); });
}

}  // namespace

extern const Architecture whisper_encoder = {
    .name = "whisper_encoder",
    .title = "Whisper's encoder beside a text model",
    .model_types = {"voxtral_encoder", "qwen2_audio_encoder"},
    .signature = {"layers.{}.self_attn_layer_norm.", "conv1.", "embed_positions."},
    .without = {},
    .describe = whisper_encoder_forward,
    .tower = Tower::audio,
    .harmless = {"encoder_*", "scale_embedding", "max_source_positions", "num_mel_bins", "layerdrop"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
