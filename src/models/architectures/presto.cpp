#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void presto_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.stack("encoder");
  b.within("encoder.", [&] {
    // Projected inputs, concatenated with encodings of position, month and channel.
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
    for (const char* group :
         {"S1", "S2_RGB", "S2_Red_Edge", "S2_NIR_10m", "S2_NIR_20m", "S2_SWIR", "ERA5", "SRTM", "NDVI"}) {
      b.reads("prediction", std::string("eo_decoder_pred.") + group);
    }
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
    .describe = presto_forward,
};

}  // namespace normscope::models::architectures
