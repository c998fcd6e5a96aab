#include "architecture.hpp"
#include "builder.hpp"
#include "llama_block.hpp"

namespace normscope::model::architectures {

namespace {

// Llama's names over LayerNorms with biases; a quarter of each head's coordinates rotate.
void forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.grouped_queries();
  b.rotary({.portion = 0.25, .portion_key = "rope_pct"});
  llama_stack(b, {.parallel = b.config().flag({"use_parallel_residual"}).value_or(false)});
}

}  // namespace

extern const Architecture stablelm = {
    .name = "stablelm",
    .title = "StableLM",
    .model_types = {"stablelm", "stablelm_epoch"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.", "layers.{}.mlp.gate_proj."},
    .without = {},
    .describe = forward,
    .harmless = {"auto_map"},  // published with code of its own before it was part of transformers
    .by_model_type_only = true,
};

}  // namespace normscope::model::architectures
