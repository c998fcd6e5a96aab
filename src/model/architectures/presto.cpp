#include "architecture.hpp"
#include "builder.hpp"
#include "timm_block.hpp"

namespace normscope::model::architectures {

namespace {

void forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.stack("encoder");
  b.within("encoder.", [&] {
    // Projected inputs, and encodings of position, month and channel side by side.
    for (const char* name :
         {"eo_patch_embed.", "dw_embed.", "latlon_embed.", "channel_embed.", "month_embed.", "pos_embed"}) {
      b.partial_input(name);
    }
    b.each_layer("blocks.{}.", [&] { timm_block(b); });
    b.norm("norm", "final");
  });
  b.stack("decoder");
  b.within("decoder.", [&] {
    b.leads_over("decoder embedding", "decoder_embed");
    for (const char* name : {"mask_token", "channel_embeddings.", "month_embed.", "pos_embed"}) {
      b.partial_input(name);
    }
    b.each_layer("decoder_blocks.{}.", [&] { timm_block(b); });
    b.norm("decoder_norm", "final");
    b.reads_each("prediction", "eo_decoder_pred.");
    b.reads("prediction", "dw_decoder_pred");
  });
}

}  // namespace

extern const Architecture presto = {
    .name = "presto",
    .title = "Presto masked auto-encoder",
    .model_types = {},
    .signature = {"encoder.blocks.{}.norm1.", "decoder.decoder_blocks.{}.norm1.", "encoder.eo_patch_embed."},
    .without = {},
    .describe = forward,
};

}  // namespace normscope::model::architectures
