#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void vit_pytorch_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.norm("to_patch_embedding.1", "patch");
  b.leads_over("patch embedding", "to_patch_embedding.2");
  b.norm("to_patch_embedding.3", "embedding", Placement::post);
  b.embedding("class token", "cls_token", Need::optional);
  b.embedding("position embedding", "pos_embedding");
  b.each_layer("transformer.layers.{}.", [&] {
    b.norm("0.norm", "attention input");
    const std::uint64_t attended = b.fused_attention("0.to_qkv", {.any_width = true});
    b.writes("attention out", "0.to_out.0", attended);
    b.norm("1.net.0", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "1.net.1");
    b.writes("mlp out", "1.net.4", inner);
  });
  b.norm("transformer.norm", "final");
  b.reads("classifier", "mlp_head", 0, Need::optional);
}

}  // namespace

extern const Architecture vit_pytorch = {
    .name = "vit_pytorch",
    .title = "ViT in the names of vit-pytorch",
    .model_types = {},
    .signature = {"transformer.layers.{}.{}.to_qkv.", "transformer.layers.{}.{}.net.{}.",
                  "to_patch_embedding.{}."},
    .without = {},
    .describe = vit_pytorch_forward,
    .tower = Tower::vision,
};

}  // namespace normscope::models::architectures
