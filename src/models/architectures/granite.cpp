#include <optional>

#include <fmt/format.h>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Llama with four multipliers. The embedding multiplier scales the stream, which a norm undoes; the residual
// multiplier scales the outputs of branches.
void granite_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6, .eps_key = "rms_norm_eps"});
  b.grouped_queries();
  b.rotary({});
  b.scores({.scale = b.config().number({"attention_multiplier"}).value_or(1.0)});
  const double divisor = b.config().number({"logits_scaling"}).value_or(1.0);
  b.logits(divisor == 0.0 ? 0.0 : 1.0 / divisor);
  const std::optional<double> residual = b.config().number({"residual_multiplier"});
  if (residual && *residual != 1.0) {
    b.note(fmt::format(
        "the outputs of attention and MLP are multiplied by {} before they are added to the residual stream",
        *residual));
  }
  b.decoder({.activation = "silu",
             .embedding_scale = b.config().number({"embedding_multiplier"}).value_or(1.0),
             .branch_scale = residual.value_or(1.0)});
  llama_stack(b);
}

}  // namespace

extern const Architecture granite = {
    .name = "granite",
    .title = "Granite",
    .model_types = {"granite"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.",
                  "layers.{}.post_attention_layernorm.", "layers.{}.mlp.gate_proj."},
    .without = {},
    .describe = granite_forward,
    .by_model_type_only = true,
    .rotates_exactly = true,
};

}  // namespace normscope::models::architectures
