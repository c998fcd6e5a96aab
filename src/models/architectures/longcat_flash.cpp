#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Experts without a matrix give their input, whatever else a file stores of them.
void read_experts(Builder& b) {
  b.reads("router", "router.classifier");
  router_correction(b, "router.e_score_correction_bias");
  b.each_expert("experts", [&] {
    for (const char* name : {"gate_proj", "up_proj"}) {
      if (b.has("down_proj.")) {
        b.reads(*name == 'g' ? "mlp gate" : "mlp in", name);
      } else {
        b.other(std::string(name) + ".weight");
      }
    }
  });
  if (b.config().count({"zero_expert_num"})) b.has_other_readers();
}

// Two blocks of attention and an MLP. The experts read what the first MLP reads, and are added behind the
// second. The latent vectors of queries and keys are multiplied by numbers behind their norms.
void longcat_layer(Builder& b) {
  if (b.layer() >= static_cast<int>(b.config().count({"num_layers"}).value_or(1'000'000))) return;
  const std::string scaled = fmt::format("kv_lora_rank: {}", b.config().count({"kv_lora_rank"}).value_or(0));
  for (const char* place : {"0", "1"}) {
    b.norm(fmt::format("input_layernorm.{}", place), "attention input");
    b.within(fmt::format("self_attn.{}.", place), [&] { latent_attention(b, scaled); });
    b.norm(fmt::format("post_attention_layernorm.{}", place), "mlp input");
    if (*place == '0') b.within("mlp.", [&] { read_experts(b); });
    b.within(fmt::format("mlps.{}.", place), [&] { gated_mlp(b, "gate_proj", "up_proj", "down_proj"); });
  }
  b.each_expert("mlp.experts", [&] { b.writes("mlp out", "down_proj", 0, Need::optional); });
  b.writes_are_indirect();
}

void longcat_flash_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.heads().head_dim = b.config().count({"qk_nope_head_dim"}).value_or(128) +
                       b.config().count({"qk_rope_head_dim"}).value_or(64);
  b.scores_not_modelled(fmt::format("kv_lora_rank: {}", b.config().count({"kv_lora_rank"}).value_or(0)));
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {"router_bias"});
  llama_stack(b, {.layer = longcat_layer});
}

}  // namespace

extern const Architecture longcat_flash = {
    .name = "longcat_flash",
    .title = "LongCat-Flash",
    .model_types = {"longcat_flash"},
    .signature = {"layers.{}.self_attn.{}.kv_a_proj_with_mqa.", "layers.{}.self_attn.{}.kv_b_proj.",
                  "layers.{}.input_layernorm.{}.", "layers.{}.mlps.{}."},
    .without = {},
    .describe = longcat_flash_forward,
    // The rotary embedding only matters to scores, which are not modelled.
    .harmless = {"attention_method", "auto_map", "expert_ffn_hidden_size", "mla_scale_*", "q_lora_rank",
                 "qk_head_dim", "rope*", "router_bias", "zero_expert_type"},
};

}  // namespace normscope::models::architectures
