#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void timm_vit_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-6});
  b.input_map("patch embedding", "patch_embed.proj");
  b.embedding("class token", "cls_token", Need::optional);
  b.embedding("distillation token", "dist_token", Need::optional);
  b.embedding("register token", "reg_token", Need::optional);
  b.embedding("position embedding", "pos_embed");
  b.each_layer("blocks.{}.", [&] { timm_block(b); });
  // fc_norm follows the pooling; it replaces the norm before it.
  b.norm(b.has("fc_norm.") ? "fc_norm" : "norm", "final");
  b.reads("classifier", "head", 0, Need::optional);
  b.reads("classifier", "head_dist", 0, Need::optional);
}

}  // namespace

extern const Architecture timm_vit = {
    .name = "timm_vit",
    .title = "ViT or DeiT, in timm's names",
    .model_types = {},
    .signature = {"blocks.{}.norm1.", "blocks.{}.mlp.fc1.", "patch_embed.proj."},
    .without = {},
    .describe = timm_vit_forward,
    .tower = Tower::vision,
};

}  // namespace normscope::models::architectures
