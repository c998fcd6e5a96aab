#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The stream behind the last layer has no norm of the tower's own: Mistral 3's projector has one, with the
// eps of its text model.
void norm_of_projector(Builder& b) {
  if (!b.has("norm.")) return;
  b.norm("norm", "final");
  b.last_eps(1e-5, {"rms_norm_eps"}, b.config().of(Tower::text));
  b.reads_are_indirect();  // several patches beside each other
}

void pixtral_forward(Builder& b) {
  b.biases_by(Biased::attention, {});
  b.biases_by(Biased::mlps, {});
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = ""});
  b.stack("vision");
  b.scores_not_modelled("rotation by row and column");
  b.input_map("patch embedding", "patch_conv");
  b.norm("ln_pre", "embedding", Placement::post);
  b.each_layer("transformer.layers.{}.", [&] {
    b.norm("attention_norm", "attention input");
    const std::uint64_t attended = b.attention("attention.q_proj", "attention.k_proj", "attention.v_proj");
    b.writes("attention out", "attention.o_proj", attended);
    b.norm("ffn_norm", "mlp input");
    gated_mlp(b, "feed_forward.gate_proj", "feed_forward.up_proj", "feed_forward.down_proj");
  });
  b.where("multi_modal_projector.", [&] { norm_of_projector(b); });
}

}  // namespace

extern const Architecture pixtral = {
    .name = "pixtral",
    .title = "Pixtral's vision tower",
    .model_types = {"pixtral"},
    .signature = {"transformer.layers.{}.attention.q_proj.", "transformer.layers.{}.ffn_norm.",
                  "patch_conv."},
    .without = {},
    .describe = pixtral_forward,
    .tower = Tower::vision,
};

}  // namespace normscope::models::architectures
