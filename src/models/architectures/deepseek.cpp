#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void deepseek_layer(Builder& b) {
  if (b.predicts_further()) return;
  b.norm("input_layernorm", "attention input");
  b.within("self_attn.", [&] { latent_attention(b); });
  b.norm("post_attention_layernorm", "mlp input");
  llama_experts(b);
  // A.X K1 normalizes what experts give; its published files store the norm for other layers, too.
  if (b.model_type() != "axk1") return;
  if (b.has("mlp.gate.")) {
    b.norm_of_branch("post_mlp_layernorm", "mlp output");
  } else if (b.has("post_mlp_layernorm.")) {
    b.other("post_mlp_layernorm.weight");
  }
}

// YaRN's factor also multiplies the scores.
double score_scale(const Config& config, double width) {
  double factor = 1.0;
  if (const std::optional<Config> scaling = config.inside({"rope_parameters", "rope_scaling"})) {
    const double weight = scaling->number({"mscale_all_dim"}).value_or(0.0);
    const double stretch = scaling->number({"factor"}).value_or(1.0);
    if (stretch > 1.0) factor = 0.1 * weight * std::log(stretch) + 1.0;
  }
  return factor * factor / std::sqrt(width);
}

void deepseek_forward(Builder& b) {
  const Config& config = b.config();
  b.norms({.kind = NormKind::rms,
           .placement = Placement::pre,
           .eps = b.model_type() == "glm4_moe_lite" ? 1e-5 : 1e-6,
           .eps_key = "rms_norm_eps"});
  if (b.model_type() != "sarvam_mla") {
    b.biases_by(Biased::attention, {"attention_bias"});
    if (b.model_type() == "deepseek_v2") {
      b.biases_by(Biased::mlps, {"mlp_bias"});
    } else {
      b.biases_by(Biased::mlps, {});
    }
  }
  const std::uint64_t width =
      config.count({"qk_nope_head_dim"}).value_or(128) + config.count({"qk_rope_head_dim"}).value_or(64);
  b.heads().head_dim = width;
  b.scores({.scale = score_scale(config, static_cast<double>(width))});
  b.scores_not_modelled(fmt::format("kv_lora_rank: {}", config.count({"kv_lora_rank"}).value_or(0)));
  llama_stack(b, {.tied = b.model_type() == "youtu", .layer = deepseek_layer});
}

}  // namespace

extern const Architecture deepseek = {
    .name = "deepseek",
    .title = "DeepSeek V2 or V3, or a model of its blocks",
    .model_types = {"deepseek_v2", "deepseek_v3", "axk1", "glm4_moe_lite", "mistral4", "sarvam_mla", "youtu"},
    .signature = {"layers.{}.self_attn.kv_a_proj_with_mqa.", "layers.{}.self_attn.kv_b_proj.",
                  "layers.{}.input_layernorm."},
    .without = {},
    .describe = deepseek_forward,
    // The rotary embedding only matters to scores, which are not modelled. auto_map: published with code of
    // its own before it was part of transformers.
    .harmless = {"auto_map", "rope*", "partial_rotary_factor", "q_lora_rank", "qk_head_dim",
                 "num_nextn_predict_layers", "quantization_config", "embedding_initializer_range",
                 "mlp_layer_types"},
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_deepseek2",
};

}  // namespace normscope::models::architectures
