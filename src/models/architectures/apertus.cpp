#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Llama with other names of its norms, norms of queries and keys, and an MLP without a gate whose activation
// has parameters.
void apertus_layer(Builder& b) {
  b.norm("attention_layernorm", "attention input");
  llama_projections(b);
  b.norm("feedforward_layernorm", "mlp input");
  for (const char* name : {"alpha_n", "alpha_p", "beta", "eps"}) b.other("mlp.act_fn." + std::string(name));
  const std::uint64_t inner = b.reads("mlp in", "mlp.up_proj");
  b.writes("mlp out", "mlp.down_proj", inner);
}

void apertus_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  b.rotary({.theta = 1.2e7, .must_state = true});
  llama_stack(b, {.layer = apertus_layer});
}

}  // namespace

extern const Architecture apertus = {
    .name = "apertus",
    .title = "Apertus",
    .model_types = {"apertus", "apertus1p5_text"},
    .signature = {"layers.{}.attention_layernorm.", "layers.{}.feedforward_layernorm."},
    .without = {},
    .describe = apertus_forward,
    .harmless = {"post_norm", "qk_norm", "output_vocab_size"},
    .rotates_exactly = true,
};

}  // namespace normscope::models::architectures
