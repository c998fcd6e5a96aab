#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void galileo_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.stream(b.config().count({"embedding_size"}).value_or(0));
  // Projections of the inputs, and encodings of place, time and channel of a quarter of the width each.
  for (const char* name :
       {"space_time_embed.", "space_embed.", "time_embed.", "static_embed.", "pos_embed", "month_embed.",
        "s_t_channel_embed", "sp_channel_embed", "t_channel_embed", "st_channel_embed"}) {
    b.partial_input(name);
  }
  b.each_layer("blocks.{}.", [&] { timm_block(b); });
  b.norm("norm", "final");
  b.reads_are_indirect();  // the use of the encoder is unknown
}

}  // namespace

extern const Architecture galileo = {
    .name = "galileo",
    .title = "Galileo encoder",
    .model_types = {},
    .signature = {"blocks.{}.norm1.", "blocks.{}.mlp.fc1.", "space_time_embed.", "static_embed."},
    .without = {},
    .describe = galileo_forward,
    .harmless = {"freeze_projections", "max_patch_size"},
};

}  // namespace normscope::models::architectures
