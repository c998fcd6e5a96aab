// Parts of speech encoders that several architectures share.

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models {

namespace {

// Norms outside the encoder that the configuration's eps does not reach.
constexpr double kSpeechEps = 1e-5;

}  // namespace

void norm_over_positions(Builder& b, std::string_view name) {
  b.note(fmt::format(
      "{} normalizes over all positions (GroupNorm): no norm of feature vectors, and not listed", name));
  b.other(fmt::format("{}.weight", name));
  b.other(fmt::format("{}.bias", name));
}

void speech_features(Builder& b, std::string_view under, bool each) {
  const std::string first = fmt::format("{}.conv_layers.0.layer_norm", under);
  if (!each && b.has(first)) norm_over_positions(b, first);
  b.each_part(fmt::format("{}.conv_layers.{{}}.", under), [&] {
    b.other("conv.weight");
    b.other("conv.bias");
    if (!each || !b.has("layer_norm.")) return;
    b.norm_of_outputs("layer_norm", "convolution output", {.role = "convolution", .map = "conv"});
    b.last_eps(kSpeechEps, {});
    b.reads_are_indirect();
  });
}

void speech_projection(Builder& b, std::string_view under, std::uint64_t width) {
  const std::string norm = fmt::format("{}.layer_norm", under);
  const std::string map = fmt::format("{}.projection", under);
  b.new_stream();
  b.stream(0);
  b.writes_are_indirect();
  if (b.has(norm + ".")) {
    b.norm(norm, "projection input", Placement::pre);
    b.leads_over("feature projection", map, width);
  } else {
    b.new_stream();
    b.stream(width);
    b.input_map("feature projection", map);
  }
}

void speech_mlp(Builder& b) {
  const std::uint64_t inner = b.reads("mlp in", "feed_forward.intermediate_dense");
  b.writes("mlp out", "feed_forward.output_dense", inner);
}

void speech_layer(Builder& b, bool before) {
  if (before) b.norm("layer_norm", "attention input");
  const std::uint64_t attended = b.attention("attention.q_proj", "attention.k_proj", "attention.v_proj");
  if (b.has("attention.gru_rel_pos_linear.")) {
    // It reads each head's part of the norm.
    for (const char* name : {"gru_rel_pos_linear.weight", "gru_rel_pos_linear.bias", "gru_rel_pos_const",
                             "rel_attn_embed.weight"}) {
      b.other(fmt::format("attention.{}", name));
    }
    b.reads_are_indirect();
  }
  b.writes("attention out", "attention.out_proj", attended);
  b.norm(before ? "final_layer_norm" : "layer_norm", before ? "mlp input" : "attention output");
  speech_mlp(b);
  if (!before) b.norm("final_layer_norm", "mlp output");
  if (!b.has("adapter_layer.")) return;
  b.norm("adapter_layer.norm", "adapter input");
  b.last_eps(kSpeechEps, {});
  const std::uint64_t narrow = b.reads("adapter in", "adapter_layer.linear_1");
  b.writes("adapter out", "adapter_layer.linear_2", narrow);
}

void speech_positions(Builder& b, std::string_view under) {
  // Not in a folder of their own: that these convolutions have a bias says nothing of others.
  b.each_part(fmt::format("{}.layers.{{}}", under), [&] {
    b.without_parameters([&] {
      b.norm_of_outputs(".layer_norm", "position convolution output",
                        {.role = "convolution", .map = ".conv"});
    });
    b.last_eps(kSpeechEps, {});
    b.reads_are_indirect();
  });
  b.partial_input(fmt::format("{}.", under));  // behind an activation
}

}  // namespace normscope::models
