#include <cstdint>
#include <optional>
#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void flex_olmo_layer(Builder& b) {
  b.reads_the_stream();
  b.branch();
  llama_projections(b);
  b.norm_of_branch("post_attention_layernorm", "attention output");
  b.reads_the_stream();
  b.branch();
  llama_experts(b);
  b.norm_of_branch("post_feedforward_layernorm", "mlp output");
}

// Branches read the stream without a norm and their outputs are normalized; so are queries and keys, all
// heads of a layer together (OLMo 2 and 3) or each of them (EXAONE 4). FlexOLMo has experts.
void olmo2_forward(Builder& b) {
  const std::string type = b.model_type();
  const bool exaone = type == "exaone4";
  const bool flex = type == "flex_olmo";
  b.norms({.kind = NormKind::rms,
           .placement = Placement::pre,
           .eps = flex ? 1e-6 : 1e-5,
           .eps_key = "rms_norm_eps"});
  if (exaone) {
    b.biases_by(Biased::attention, {});
  } else {
    b.biases_by(Biased::attention, {"attention_bias"});
  }
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  b.note("attention and MLP read the residual stream without a norm, so its heads' scores have no bound");
  const bool windows = b.config().has({"sliding_window"});
  // EXAONE 4 rotates only in layers with a window, if there are any.
  b.rotary({.theta = flex || type == "olmo3" ? 5e5 : 1e4,
            .windows_unscaled = type == "olmo3" || (type.empty() && windows),
            .windows_only = exaone && windows});
  // EXAONE 4's pattern may be letters, beside a list of the kinds of layers.
  const bool letters = b.config().fields()["sliding_window_pattern"].starts_with('"');
  if (windows) b.windows({.period = letters ? std::uint64_t{0} : std::uint64_t{4}});
  if (windows && letters && !b.config().has({"layer_types"})) {
    b.scores_not_modelled("layer_types, which are not stated");
  }
  b.decoder({.activation = "silu", .routing = flex ? softmax_routing(b) : std::nullopt});
  llama_stack(b, {.layer = flex ? flex_olmo_layer : llama_branches_with_norms});
}

}  // namespace

extern const Architecture olmo2 = {
    .name = "olmo2",
    .title = "OLMo 2, OLMo 3 or EXAONE 4",
    .model_types = {"olmo2", "olmo3", "exaone4", "flex_olmo"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.self_attn.q_norm.",
                  "layers.{}.post_attention_layernorm.", "layers.{}.post_feedforward_layernorm."},
    .without = {"layers.{}.input_layernorm.", "layers.{}.pre_feedforward_layernorm."},
    .describe = olmo2_forward,
    .harmless = {"sliding_window_pattern"},
    .in_llama_cpp = "gguf_olmo2",
};

}  // namespace normscope::models::architectures
