#include <optional>
#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Files have a norm under one of two names: transformers writes those of delta nets in layers of attention,
// too.
const char* stored(const Builder& b, const char* name, const char* other) {
  return b.shape(std::string(name) + ".weight").empty() ? other : name;
}

// Delta nets read the stream behind norms; attention, as in OLMo 2, reads the stream itself, and the outputs
// of its branches are normalized.
void olmo_hybrid_layer(Builder& b) {
  const char* const second = stored(b, "post_attention_layernorm", "feedforward_layer_norm");
  if (b.has("linear_attn.")) {
    b.norm(stored(b, "input_layernorm", "attention_layer_norm"), "mixer input");
    b.within("linear_attn.", [&] { delta_net(b); });
    b.norm(second, "mlp input");
    return llama_mlp(b);
  }
  b.reads_the_stream();
  b.branch();
  llama_projections(b);
  b.norm_of_branch(second, "attention output");
  b.branch();
  llama_mlp(b);
  b.norm_of_branch("post_feedforward_layernorm", "mlp output");
}

void olmo_hybrid_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6, .eps_key = "rms_norm_eps"});
  b.note("attention reads the residual stream without a norm, so its heads' scores have no bound");
  b.note("its delta nets divide queries and keys by their length, which is not analysed");
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {});
  b.biases_by(Biased::mixers, {});
  b.grouped_queries();
  // Without a base nothing rotates, unless nothing is stated at all.
  const std::optional<Config> rope = b.config().inside({"rope_parameters"});
  if (!rope || rope->has({"rope_theta"})) b.rotary({});
  llama_stack(b, {.layer = olmo_hybrid_layer});
}

}  // namespace

extern const Architecture olmo_hybrid = {
    .name = "olmo_hybrid",
    .title = "OLMo Hybrid",
    .model_types = {"olmo_hybrid"},
    .signature = {"layers.{}.linear_attn.o_norm.", "layers.{}.linear_attn.A_log",
                  "layers.{}.self_attn.q_norm.", "layers.{}.post_feedforward_layernorm."},
    .without = {},
    .describe = olmo_hybrid_forward,
    .harmless = {"linear_*"},
};

}  // namespace normscope::models::architectures
