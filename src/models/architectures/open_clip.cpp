#include <cstdint>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void blocks(Builder& b) {
  b.each_layer("transformer.resblocks.{}.", [&] {
    b.norm("ln_1", "attention input");
    const std::uint64_t attended = b.fused_attention("attn.in_proj_weight");
    b.writes("attention out", "attn.out_proj", attended);
    b.norm("ln_2", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "mlp.c_fc");
    b.writes("mlp out", "mlp.c_proj", inner);
  });
}

// The features are the final norm times a matrix that is stored [in, out].
void projection(Builder& b, const char* name) {
  b.layout(Layout::in_out);
  b.reads("projection", name, 0, Need::optional);
  b.layout(Layout::out_in);
}

void vision_tower(Builder& b) {
  b.stack("vision");
  b.within("visual.", [&] {
    b.embedding("class token", "class_embedding");
    b.input_map("patch embedding", "conv1");
    b.embedding("position embedding", "positional_embedding");
    b.norm("ln_pre", "embedding", Placement::post);
    blocks(b);
    b.norm("ln_post", "final");
    projection(b, "proj");
  });
}

void text_tower(Builder& b) {
  b.new_stream();
  b.stream(0);
  b.stack("text");
  b.embedding("token embedding", "token_embedding");
  b.embedding("position embedding", "positional_embedding");
  blocks(b);
  b.norm("ln_final", "final");
  projection(b, "text_projection");
}

void open_clip_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.other("logit_scale");
  b.other("logit_bias");
  vision_tower(b);
  text_tower(b);
}

}  // namespace

extern const Architecture open_clip = {
    .name = "open_clip",
    .title = "OpenCLIP",
    .model_types = {},
    .signature = {"transformer.resblocks.{}.ln_1.", "visual.transformer.resblocks.{}.ln_1.", "visual.ln_pre.",
                  "ln_final.", "token_embedding."},
    // Layer scale, attention pooling and attention over cosines are not described.
    .without = {"visual.transformer.resblocks.{}.ls_1.", "transformer.resblocks.{}.ls_1.",
                "visual.attn_pool.", "visual.transformer.resblocks.{}.attn.logit_scale",
                "transformer.resblocks.{}.attn.logit_scale", "visual.transformer.resblocks.{}.attn.ln.",
                "transformer.resblocks.{}.attn.ln."},
    .describe = open_clip_forward,
};

}  // namespace normscope::models::architectures
