#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Both stacks of torch.nn.Transformer end with a norm, wherever the others are.
void torch_transformer_forward(Builder& b) {
  const bool before = torch_norm_first(b, false);
  b.stack("encoder");
  b.within("encoder.", [&] { torch_encoder_stack(b, before); });
  b.remember_for_cross_attention();
  b.stack("decoder");
  b.within("decoder.", [&] { torch_decoder_stack(b, before); });
  torch_finish(b);
}

}  // namespace

extern const Architecture torch_transformer = {
    .name = "torch_transformer",
    .title = "torch.nn.Transformer",
    .model_types = {},
    .signature = {"encoder.layers.{}.self_attn.in_proj_weight",
                  "decoder.layers.{}.multihead_attn.in_proj_weight", "encoder.layers.{}.linear1.",
                  "decoder.layers.{}.norm3."},
    .without = {"query_embed."},
    .describe = torch_transformer_forward,
    .harmless = {"activation", "batch_first", "dim_feedforward", "norm_first", "num_decoder_layers",
                 "num_encoder_layers"},
};

}  // namespace normscope::models::architectures
