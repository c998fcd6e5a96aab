#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Granite with windows has a base of rotations for each layer, 0 where nothing turns. The class reads the
// type of the rotation elsewhere.
void rotation_of_layer(Builder& b) {
  const std::optional<std::vector<double>> bases = b.config().numbers({"layer_rope_theta"});
  if (!bases) return;
  const std::optional<Config> rotation = b.config().inside({"rope_parameters"});
  const auto layer = static_cast<std::size_t>(b.layer());
  const bool is_default = !rotation || rotation->text({"rope_type"}).value_or("default") == "default";
  if (!is_default || layer >= bases->size() || b.config().has({"no_rope_layers", "no_rope_layer_interval"})) {
    return b.scores_not_modelled("layer_rope_theta beside other fields of rotations");
  }
  const bool turns = (*bases)[layer] != 0.0;
  b.rotary({.is_fixed = true, .theta = turns ? (*bases)[layer] : 1.0, .still_every = turns ? 0u : 1u});
}

// Experts in place of the MLP, or beside one that every token passes, or that alone; a state space in place
// of attention; attention with sinks.
void granite_layer(Builder& b) {
  const bool windowed = b.model_type().ends_with("_swa");
  if (windowed) rotation_of_layer(b);
  if (b.has("mamba.")) {
    b.norm("input_layernorm", "mixer input");
    b.within("mamba.", [&] { state_space_mixer(b); });
  } else {
    llama_attention(b);
    if (windowed) b.sinks("self_attn.sinks");
  }
  b.norm("post_attention_layernorm", "mlp input");
  if (b.has("mlp.")) return llama_mlp(b);
  const auto gated = [&](const char* in, const char* out) {
    b.writes("mlp out", out, b.reads_parts({"mlp gate", "mlp in"}, in));
  };
  const auto linear = [&] { gated("input_linear.weight", "output_linear.weight"); };
  if (b.has("block_sparse_moe.")) {
    b.within("block_sparse_moe.", [&] {
      b.reads("router", windowed ? "router" : "router.layer");
      if (windowed) {
        b.each_expert("experts.gate_up_proj", [&] { gated("experts.gate_up_proj", "experts.down_proj"); });
      } else {
        b.each_expert("input_linear.weight", linear);
      }
    });
  }
  if (b.has("shared_mlp.")) b.within("shared_mlp.", linear);
}

// HyperCLOVA X normalizes the outputs of branches as well, if it is told to.
void hyperclovax_layer(Builder& b) {
  llama_attention(b);
  if (b.has("post_norm1.")) b.norm_of_branch("post_norm1", "attention output");
  b.norm("post_attention_layernorm", "mlp input");
  llama_mlp(b);
  if (b.has("post_norm2.")) b.norm_of_branch("post_norm2", "mlp output");
}

// Llama with four multipliers. The embedding multiplier scales the stream, which a norm undoes; the residual
// multiplier scales the outputs of branches.
void granite_forward(Builder& b) {
  b.norms({.kind = NormKind::rms,
           .placement = Placement::pre,
           .eps = b.model_type() == "granite_swa" ? 1e-5 : 1e-6,
           .eps_key = "rms_norm_eps"});
  b.grouped_queries();
  const bool hybrid = b.model_type() == "granitemoehybrid";
  if (!hybrid || b.config().text({"position_embedding_type"}) == "rope") {
    b.rotary({});
  } else {
    b.ignores({"rope_theta", "rope_parameters", "rope_scaling"});
  }
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::norms_of_heads, {});
  if (hybrid) b.biases_by(Biased::mixers, {"mamba_proj_bias"});
  if (b.model_type().starts_with("granitemoe")) {
    b.biases_by(Biased::mlps, {});
  } else {
    b.biases_by(Biased::mlps, {"mlp_bias"});
  }
  const bool windowed = b.model_type().ends_with("_swa");
  if (windowed) b.windows({.period = 4, .first_is_full = true});
  const bool clova = b.model_type() == "hyperclovax";
  const std::optional<double> scale = b.config().number({"attention_multiplier"});
  b.scores({.scale = clova ? scale : scale.value_or(1.0)});
  const double scaling = b.config().number({"logits_scaling"}).value_or(1.0);
  b.logits(clova || scaling == 0.0 ? scaling : 1.0 / scaling);  // HyperCLOVA X multiplies
  const std::optional<double> residual = b.config().number({"residual_multiplier"});
  if (residual && *residual != 1.0) {
    b.note(fmt::format(
        "the outputs of attention and MLP are multiplied by {} before they are added to the residual stream",
        *residual));
  }
  if (hybrid) {
    b.ignores({"embedding_multiplier"});
    return llama_stack(b, {.layer = granite_layer});
  }
  const bool has_experts = b.has("layers.0.block_sparse_moe.");
  b.decoder({.activation = "silu",
             .embedding_scale = b.config().number({"embedding_multiplier"}).value_or(1.0),
             .branch_scale = residual.value_or(1.0),
             .routing = has_experts ? softmax_routing(b, true) : std::nullopt});
  llama_stack(b, {.tied = b.model_type() == "granite_swa",
                  .layer = clova                     ? hyperclovax_layer
                           : has_experts || windowed ? granite_layer
                                                     : nullptr});
}

}  // namespace

extern const Architecture granite = {
    .name = "granite",
    .title = "Granite or HyperCLOVA X",
    .model_types = {"granite", "granitemoe", "granitemoeshared", "granitemoehybrid", "granite_swa",
                    "granitemoe_swa", "hyperclovax"},
    .signature = {"layers.{}.input_layernorm.", "layers.{}.post_attention_layernorm."},
    .without = {},
    .describe = granite_forward,
    .harmless = {"init_method", "layers_block_type", "mamba_*", "normalization_function",
                 "shared_intermediate_size", "time_step_limit", "use_post_norm"},
    .by_model_type_only = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_granite",
};

}  // namespace normscope::models::architectures
