#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Every head has a sink: a learned score of its own in the softmax. The experts' matrices are stacked, and
// gate and input of an expert alternate in one of them.
void gpt_oss_layer(Builder& b) {
  llama_attention(b);
  b.other("self_attn.sinks");
  b.norm("post_attention_layernorm", "mlp input");
  b.within("mlp.", [&] {
    b.reads("router", "router");
    b.layout(Layout::in_out);
    b.each_expert("experts.gate_up_proj", [&] {
      b.reads("mlp gate and in", "experts.gate_up_proj");
      b.writes("mlp out", "experts.down_proj");
    });
    b.layout(Layout::out_in);
  });
}

void gpt_oss_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.grouped_queries();
  b.rotary({.theta = 150'000.0});
  b.windows({.period = 2});
  b.scores_not_modelled("attention sinks (tensor \"self_attn.sinks\")");
  llama_stack(b, {.layer = gpt_oss_layer});
}

}  // namespace

extern const Architecture gpt_oss = {
    .name = "gpt_oss",
    .title = "gpt-oss",
    .model_types = {"gpt_oss"},
    .signature = {"layers.{}.self_attn.sinks", "layers.{}.self_attn.q_proj.", "layers.{}.mlp.router."},
    .without = {},
    .describe = gpt_oss_forward,
    .harmless = {"swiglu_alpha", "swiglu_limit", "quantization_config", "initial_context_length"},
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_gpt_oss",
};

}  // namespace normscope::models::architectures
