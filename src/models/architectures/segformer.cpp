#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Keys and values are of fewer positions, which a convolution of the norm makes.
std::uint64_t segformer_attention(Builder& b) {
  if (!b.has("attention.self.sr.")) {
    return b.attention("attention.self.query", "attention.self.key", "attention.self.value");
  }
  b.reads_are_indirect();
  b.norm_of_outputs("attention.self.layer_norm", "fewer positions",
                    {.role = "fewer positions", .map = "attention.self.sr"});
  b.remember_for_cross_attention();
  b.norm("layer_norm_1", "attention input");  // again, for the queries
  return b.cross_attention("attention.self.query", "attention.self.key", "attention.self.value");
}

void segformer_block(Builder& b) {
  b.norm("layer_norm_1", "attention input");
  b.writes("attention out", "attention.output.dense", segformer_attention(b));
  b.norm("layer_norm_2", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "mlp.dense1");
  b.other("mlp.dwconv.dwconv.weight");  // within the MLP, before its activation
  b.other("mlp.dwconv.dwconv.bias");
  b.writes("mlp out", "mlp.dense2", inner);
}

void segformer_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = ""});
  const std::optional<std::vector<std::uint64_t>> heads = b.config().counts({"num_attention_heads"});
  b.each_stage("patch_embeddings.{}.", [&](std::size_t stage) {
    b.new_stream();
    b.stream(0);
    b.input_map("patch embedding", "proj");
    b.norm("layer_norm", "embedding", Placement::post);
    b.heads() = {.heads = heads && stage < heads->size() ? (*heads)[stage] : 0};
    b.where(fmt::format("block.{}.", stage),
            [&] { b.each_layer_of_stage("{}.", stage, [&] { segformer_block(b); }); });
    b.where(fmt::format("layer_norm.{}", stage), [&] { b.norm("", "final"); });
    b.reads_are_indirect();  // a convolution of several positions, or what the task needs
  });
  for (const char* head : {"classifier.", "decode_head."}) {
    b.where(head, [&] { b.partial_input(""); });
  }
}

}  // namespace

extern const Architecture segformer = {
    .name = "segformer",
    .title = "SegFormer",
    .model_types = {"segformer"},
    .signature = {"patch_embeddings.{}.layer_norm.", "block.{}.{}.layer_norm_1.", "block.{}.{}.mlp.dwconv."},
    .without = {},
    .describe = segformer_forward,
    .tower = Tower::vision,
    .harmless = {"num_encoder_blocks", "depths", "sr_ratios", "hidden_sizes", "patch_sizes", "strides",
                 "mlp_ratios", "decoder_hidden_size", "semantic_loss_ignore_index", "reshape_last_stage",
                 "downsampling_rates", "layer_norm_eps"},
};

}  // namespace normscope::models::architectures
