#include <cstdint>
#include <string>
#include <vector>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void norms_of_kind(Builder& b, NormKind kind) {
  b.norms({.kind = kind, .placement = Placement::pre, .eps = 1e-6, .eps_key = ""});
}

// Norms of queries and keys; both streams attend together, so no head has queries of one map.
void joint_norms_of_heads(Builder& b, const std::vector<std::vector<std::string>>& norms) {
  norms_of_kind(b, NormKind::rms);
  for (const std::vector<std::string>& one : norms) {
    const std::vector<std::uint64_t> gain = b.shape("attn." + one[0] + ".weight");
    if (gain.size() != 1) continue;
    b.norm_of_outputs("attn." + one[0], one[1] + " norm",
                      {.role = one[1], .map = "attn." + one[2], .each = gain[0]});
    b.reads_are_indirect();
  }
  norms_of_kind(b, NormKind::layer);
}

// A norm without parameters, whose output a condition multiplies and shifts.
void joint_norm(Builder& b, const std::string& name, const char* role) {
  b.without_parameters([&] { b.norm(name, role); });
  b.reads_are_indirect();
  b.writes_are_indirect();
}

// Images and text are two streams, each with norms of its own. Maps read modulated rows, and a condition
// gates what branches add.
void joint_block(Builder& b) {
  joint_norm(b, "norm1.norm", "attention input");
  joint_norm(b, "norm1_context.norm", "attention input of the text");
  joint_norms_of_heads(b, {{"norm_q", "query", "to_q"},
                           {"norm_k", "key", "to_k"},
                           {"norm_added_q", "query of the text", "add_q_proj"},
                           {"norm_added_k", "key of the text", "add_k_proj"}});
  b.partial_input("");
  joint_norm(b, "norm2", "mlp input");
  if (b.has("ff_context.")) joint_norm(b, "norm2_context", "mlp input of the text");
}

// Both in one stream, with attention and MLP beside each other.
void joined_block(Builder& b) {
  joint_norm(b, "norm.norm", "attention and mlp input");
  joint_norms_of_heads(b, {{"norm_q", "query", "to_q"}, {"norm_k", "key", "to_k"}});
  b.partial_input("");
}

void joint_diffusion_forward(Builder& b) {
  norms_of_kind(b, NormKind::layer);
  b.note("heads are not modelled: they attend to images and text together");
  b.note(
      "not modelled: a condition multiplies and shifts the outputs of the norms, which have no gain "
      "(adaptive "
      "norms)");
  b.stream(b.config().count({"num_attention_heads"}).value_or(0) *
           b.config().count({"attention_head_dim"}).value_or(0));
  for (const char* part : {"pos_embed.", "x_embedder.", "context_embedder.", "time_text_embed."})
    b.partial_input(part);
  b.each_layer("transformer_blocks.{}.", [&] { joint_block(b); });
  if (b.has("single_transformer_blocks.")) {
    b.each_layer("single_transformer_blocks.{}.", [&] { joined_block(b); }, {"num_single_layers"});
  }
  joint_norm(b, "norm_out.norm", "final");
  for (const char* part : {"norm_out.", "proj_out."}) b.partial_input(part);
}

}  // namespace

extern const Architecture joint_diffusion = {
    .name = "joint_diffusion",
    .title = "Stable Diffusion 3 or Flux",
    .model_types = {"SD3Transformer2DModel", "FluxTransformer2DModel"},
    .signature = {"transformer_blocks.{}.norm1_context.linear.", "context_embedder."},
    .without = {},
    .describe = joint_diffusion_forward,
    .harmless = {"*"},  // nothing but norms is described
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
