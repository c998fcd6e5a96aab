#include <optional>

#include <fmt/format.h>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Experts in place of the MLP, or beside one that every token passes, or that alone; a state space in place
// of attention.
void granite_layer(Builder& b) {
  if (b.has("mamba.")) {
    b.norm("input_layernorm", "mixer input");
    b.within("mamba.", [&] { state_space_mixer(b); });
  } else {
    llama_attention(b);
  }
  b.norm("post_attention_layernorm", "mlp input");
  const auto gated = [&] {
    const std::uint64_t inner = b.reads_parts({"mlp gate", "mlp in"}, "input_linear.weight");
    b.writes("mlp out", "output_linear.weight", inner);
  };
  if (b.has("block_sparse_moe.")) {
    b.within("block_sparse_moe.", [&] {
      b.reads("router", "router.layer");
      b.each_expert("input_linear.weight", gated);
    });
  }
  if (b.has("shared_mlp.")) b.within("shared_mlp.", gated);
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
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6, .eps_key = "rms_norm_eps"});
  b.grouped_queries();
  const bool hybrid = b.model_type() == "granitemoehybrid";
  if (!hybrid || b.config().text({"position_embedding_type"}) == "rope") {
    b.rotary({});
  } else {
    b.ignores({"rope_theta", "rope_parameters", "rope_scaling"});
  }
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
  llama_stack(b, {.layer = clova ? hyperclovax_layer : has_experts ? granite_layer : nullptr});
}

}  // namespace

extern const Architecture granite = {
    .name = "granite",
    .title = "Granite or HyperCLOVA X",
    .model_types = {"granite", "granitemoe", "granitemoeshared", "granitemoehybrid", "hyperclovax"},
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
