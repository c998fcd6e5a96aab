#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void torch_decoder_forward(Builder& b) {
  torch_decoder_stack(b, torch_norm_first(b, b.has("norm.")));
  torch_finish(b);
}

}  // namespace

extern const Architecture torch_decoder = {
    .name = "torch_decoder",
    .title = "torch.nn.TransformerDecoder",
    .model_types = {},
    .signature = {"layers.{}.self_attn.in_proj_weight", "layers.{}.multihead_attn.in_proj_weight",
                  "layers.{}.norm3."},
    .without = {"encoder.layers.{}.self_attn.in_proj_weight", "query_embed."},
    .describe = torch_decoder_forward,
    .harmless = {"activation", "batch_first", "dim_feedforward", "norm_first", "num_decoder_layers",
                 "num_encoder_layers"},
};

}  // namespace normscope::models::architectures
