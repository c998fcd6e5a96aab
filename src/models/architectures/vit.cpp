#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void vit_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  const bool averages = b.model_type() == "ijepa";  // has no class token
  b.embedding("class token", "embeddings.cls_token", averages ? Need::optional : Need::required);
  b.embedding("distillation token", "embeddings.distillation_token", Need::optional);
  b.embedding("mask token", "embeddings.mask_token", Need::optional);
  b.embedding("position embedding", "embeddings.position_embeddings");
  b.input_map("patch embedding", "embeddings.patch_embeddings.projection");
  b.each_layer("encoder.layer.{}.", [&] {
    b.norm("layernorm_before", "attention input");
    const std::uint64_t attended =
        b.attention("attention.attention.query", "attention.attention.key", "attention.attention.value");
    b.writes("attention out", "attention.output.dense", attended);
    b.norm("layernorm_after", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "intermediate.dense");
    b.writes("mlp out", "output.dense", inner);
  });
  b.norm("layernorm", "final");
  if (averages) {
    b.reads_are_indirect();
    b.where("classifier", [&] {
      b.other("weight");
      b.other("bias");
    });
    return;
  }
  b.reads("pooler", "pooler.dense", 0, Need::optional);
  for (const char* head : {"classifier", "cls_classifier", "distillation_classifier"}) {
    b.where(head, [&] { b.reads("classifier", "", 0, Need::optional); });
  }
}

}  // namespace

extern const Architecture vit = {
    .name = "vit",
    .title = "ViT or DeiT",
    .model_types = {"vit", "deit", "ijepa"},
    .signature = {"encoder.layer.{}.layernorm_before.", "encoder.layer.{}.attention.attention.query."},
    .without = {},
    .describe = vit_forward,
    .tower = Tower::vision,
    .centres_exactly = true,
    .rotates_exactly = true,
};

}  // namespace normscope::models::architectures
