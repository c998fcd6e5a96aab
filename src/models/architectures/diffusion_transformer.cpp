#include <cstdint>
#include <string>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Norms that the configuration's eps does not reach.
constexpr double kModulatedEps = 1e-6;

// What a condition (a time step, a class) makes multiplies and shifts the output of a norm without gain.
void modulated_norm(Builder& b, const char* name, const char* role) {
  b.without_parameters([&] { b.norm(name, role); });
  b.reads_are_indirect();
}

// A branch whose output the condition multiplies as well.
void modulated_mlp(Builder& b) {
  b.reads_the_stream();
  const std::uint64_t inner = b.reads("mlp in", "ff.net.0.proj");
  b.writes("mlp out", "ff.net.2", inner);
  b.writes_are_indirect();
}

void diffusion_block(Builder& b) {
  const bool by_class = b.has("norm1.linear.");
  b.other("scale_shift_table");
  modulated_norm(b, by_class ? "norm1.norm" : "norm1", "attention input");
  if (by_class) b.last_eps(kModulatedEps, {});
  b.reads_the_stream();
  const std::uint64_t attended = b.attention("attn1.to_q", "attn1.to_k", "attn1.to_v");
  b.partial_input("norm1.");
  b.writes("attention out", "attn1.to_out.0", attended);
  b.writes_are_indirect();
  if (b.has("attn2.")) {
    const std::uint64_t crossed = b.cross_attention("attn2.to_q", "attn2.to_k", "attn2.to_v");
    b.writes("cross-attention out", "attn2.to_out.0", crossed);
    b.writes_are_indirect();
  }
  modulated_norm(b, by_class ? "norm3" : "norm2", "mlp input");
  modulated_mlp(b);
}

void diffusion_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "norm_eps"});
  b.note(
      "not modelled: a condition multiplies and shifts the outputs of the norms, which have no gain "
      "(adaptive "
      "norms)");
  b.input_map("patch embedding", "pos_embed.proj");
  b.writes_are_indirect();  // a table of positions
  b.each_layer("transformer_blocks.{}.", [&] { diffusion_block(b); });
  modulated_norm(b, "norm_out", "final");
  b.last_eps(kModulatedEps, {});
  for (const char* name : {"scale_shift_table", "proj_out.weight", "proj_out_1.weight", "proj_out_2.weight"})
    b.other(name);
  for (const char* part : {"adaln_single.", "caption_projection."}) b.partial_input(part);
}

}  // namespace

extern const Architecture diffusion_transformer = {
    .name = "diffusion_transformer",
    .title = "DiT or PixArt",
    .model_types = {"DiTTransformer2DModel", "PixArtTransformer2DModel"},
    .signature = {"transformer_blocks.{}.attn1.to_q.", "transformer_blocks.{}.ff.net.{}.", "pos_embed.proj."},
    .without = {},
    .describe = diffusion_forward,
    .harmless = {"_class_name", "_diffusers_version", "activation_fn", "attention_head_dim", "attention_type",
                 "caption_channels", "cross_attention_dim", "in_channels", "interpolation_scale",
                 "norm_elementwise_affine", "norm_num_groups", "norm_type", "num_embeds_ada_norm",
                 "out_channels", "sample_size", "upcast_attention", "use_additional_conditions"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
