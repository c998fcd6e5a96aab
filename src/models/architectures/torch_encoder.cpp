#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void torch_encoder_forward(Builder& b) {
  torch_encoder_stack(b, torch_norm_first(b, b.has("norm.")));
  torch_finish(b);
}

}  // namespace

extern const Architecture torch_encoder = {
    .name = "torch_encoder",
    .title = "torch.nn.TransformerEncoder",
    .model_types = {},
    .signature = {"layers.{}.self_attn.in_proj_weight", "layers.{}.linear1.", "layers.{}.norm1."},
    .without = {"layers.{}.multihead_attn.", "query_embed.", "layers.{}.norm3."},
    .describe = torch_encoder_forward,
    .harmless = {"activation", "batch_first", "dim_feedforward", "norm_first", "num_decoder_layers",
                 "num_encoder_layers"},
};

}  // namespace normscope::models::architectures
