#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void torch_vit_forward(Builder& b) {
  // The file does not distinguish pre-norm from post-norm. The public checkpoint of this form classifies 8 of
  // 10 MNIST digits correctly as post-norm and 4 of 10 as pre-norm.
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-5});
  b.note("Post-LN is assumed, as its publisher documents: neither names nor shapes of the tensors show it");
  b.input_map("patch embedding", "patch_embed.proj");
  b.embedding("position embedding", "pos_embed");
  b.each_layer("encoder.{}.", [&] {
    const std::uint64_t attended = b.fused_attention("attn.in_proj_weight");
    b.writes("attention out", "attn.out_proj", attended);
    b.norm("norm1", "attention output");
    const std::uint64_t inner = b.reads("mlp in", "ffn.fc1");
    b.writes("mlp out", "ffn.fc2", inner);
    b.norm("norm2", "mlp output");
  });
  b.norm("norm", "final", Placement::pre);
  b.reads("classifier", "classifier");
  b.reads_are_indirect();  // tokens are pooled in between
}

}  // namespace

extern const Architecture torch_vit = {
    .name = "torch_vit",
    .title = "ViT with torch.nn.MultiheadAttention",
    .model_types = {},
    .signature = {"encoder.{}.attn.in_proj_weight", "encoder.{}.norm1.", "patch_embed.proj."},
    .without = {},
    .describe = torch_vit_forward,
};

}  // namespace normscope::models::architectures
