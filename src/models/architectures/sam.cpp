#include <cstdint>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The neck's convolutions have norms of channels, with an eps of their own whatever the configuration says.
constexpr double kSamNeckEps = 1e-6;

void sam_neck(Builder& b) {
  b.new_stream();
  b.norm_of_outputs("neck.layer_norm1", "neck", {.role = "neck", .map = "neck.conv1"});
  b.last_eps(kSamNeckEps, {});
  b.reads_are_indirect();  // a convolution of several positions
  b.norm_of_outputs("neck.layer_norm2", "final", {.role = "neck", .map = "neck.conv2"});
  b.last_eps(kSamNeckEps, {});
}

void sam_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-6, .eps_key = "layer_norm_eps"});
  b.scores_not_modelled("relative positions, windows");
  b.stack("vision");
  b.embedding("position embedding", "pos_embed", Need::optional);
  b.input_map("patch embedding", "patch_embed.projection");
  b.each_layer("layers.{}.", [&] {
    b.norm("layer_norm1", "attention input");
    const std::uint64_t attended = b.fused_attention("attn.qkv");
    b.other("attn.rel_pos_h");
    b.other("attn.rel_pos_w");
    b.writes("attention out", "attn.proj", attended);
    b.norm("layer_norm2", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "mlp.lin1");
    b.writes("mlp out", "mlp.lin2", inner);
  });
  sam_neck(b);
  b.note("the decoder of prompts and masks is not modelled");
}

}  // namespace

extern const Architecture sam = {
    .name = "sam",
    .title = "SAM's image encoder",
    .model_types = {"sam", "sam_vision_model", "sam_hq", "sam_hq_vision_model"},
    .signature = {"layers.{}.attn.rel_pos_h", "layers.{}.layer_norm1.", "neck.conv1."},
    .without = {},
    .describe = sam_forward,
    .tower = Tower::vision,
    .harmless = {"output_channels", "window_size", "global_attn_indexes", "num_pos_feats", "mlp_dim",
                 "use_abs_pos", "use_rel_pos", "scale"},
};

}  // namespace normscope::models::architectures
