#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Every head has a sink: a learned score of its own in the softmax. The experts' matrices are stacked, and
// gate and input of an expert alternate in one of them.
void gpt_oss_layer(Builder& b) {
  llama_attention(b);
  b.sinks("self_attn.sinks");
  b.norm("post_attention_layernorm", "mlp input");
  b.within("mlp.", [&] {
    b.reads("router", "router");
    b.layout(Layout::in_out);
    b.each_expert("experts.gate_up_proj", [&] {
      const std::uint64_t inner = b.reads_parts({"mlp gate", "mlp in"}, "experts.gate_up_proj", true);
      b.writes("mlp out", "experts.down_proj", inner);
    });
    b.layout(Layout::out_in);
  });
}

void gpt_oss_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.biases_by(Biased::norms_of_heads, {});
  b.grouped_queries();
  b.rotary({.theta = 150'000.0, .must_state = true});
  b.windows({.period = 2});
  const double alpha = b.config().number({"swiglu_alpha"}).value_or(1.702);
  const double limit = b.config().number({"swiglu_limit"}).value_or(7.0);
  b.decoder({.activation = "silu",
             .fixed_activation = true,
             .reads_activation = false,
             .clamped_gate = ClampedGate{alpha, limit},
             .routing = softmax_routing(b, true)});
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
    .harmless = {"quantization_config", "initial_context_length"},
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_gpt_oss",
};

}  // namespace normscope::models::architectures
