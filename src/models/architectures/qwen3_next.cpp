#include <cstdint>
#include <vector>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Beside the queries of each head are gates of its output.
void gated_attention(Builder& b) {
  b.head_dim_from("self_attn.q_norm");
  const std::uint64_t attended =
      b.gated_attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  norms_of_queries_and_keys(b, "self_attn.q_norm", "self_attn.k_norm");
  b.writes("attention out", "self_attn.o_proj", attended);
}

void qwen3_next_layer(Builder& b) {
  if (b.predicts_further()) return;
  const bool attends = !b.has("linear_attn.");
  b.norm("input_layernorm", attends ? "attention input" : "mixer input");
  if (attends) {
    gated_attention(b);
  } else {
    b.within("linear_attn.", [&] { delta_net(b); });
  }
  b.norm("post_attention_layernorm", "mlp input");
  llama_experts(b);
}

// mlx-lm adds 1 to the gains when it moves the last axis of the convolutions, and not again when it reads
// what it wrote.
bool has_gains_of_mlx(Builder& b) {
  bool moved = false;
  b.each_part("layers.{}.", [&] {
    const std::vector<std::uint64_t> shape = b.shape("linear_attn.conv1d.weight");
    moved = moved || (shape.size() == 3 && shape[1] > 1 && shape[2] == 1);
  });
  if (moved)
    b.note("1 is added to the stored gains already: its convolutions are in mlx-lm's order, which does both");
  return moved;
}

void qwen3_next_forward(Builder& b) {
  const bool was_shifted = has_gains_of_mlx(b);
  b.norms({.kind = NormKind::rms,
           .placement = Placement::pre,
           .gain_offset = was_shifted ? 0.0 : 1.0,
           .gain_was_shifted = was_shifted,
           .eps = 1e-6,
           .eps_key = "rms_norm_eps"});
  b.note("its delta nets divide queries and keys by their length, which is not analysed");
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {});
  b.biases_by(Biased::mixers, {});
  b.grouped_queries();
  if (b.model_type() != "qwen3_next") {
    b.note("scores are bounded for text: the position of a part of an image is three numbers");
  }
  b.rotary({.portion = 0.25, .sections = true});
  llama_stack(b, {.layer = qwen3_next_layer});
}

}  // namespace

extern const Architecture qwen3_next = {
    .name = "qwen3_next",
    .title = "Qwen3-Next or Qwen3.5",
    .model_types = {"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"},
    .signature = {"layers.{}.linear_attn.in_proj_qkv", "layers.{}.linear_attn.A_log",
                  "layers.{}.input_layernorm.", "layers.{}.post_attention_layernorm.", "layers.{}.mlp."},
    .without = {},
    .describe = qwen3_next_forward,
    .harmless = {"attn_output_gate", "full_attention_interval", "linear_*", "mamba_ssm_dtype", "mtp_*"},
};

}  // namespace normscope::models::architectures
