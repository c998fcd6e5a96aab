#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

NormStyle norms_of(NormKind kind) {
  return {.kind = kind, .placement = Placement::pre, .eps = 1e-6, .eps_key = "norm_eps"};
}

// Queries, keys and values of a recurrence with gates. Its outputs pass a LayerNorm for every head, and are
// multiplied by another gate.
void gated_recurrence(Builder& b) {
  if (b.has("qkv_opreact.")) {
    b.reads("mixer in", "qkv_opreact");
    b.reads("mixer gate", "ifgate_preact");
  } else {
    for (const char* name : {"q", "k", "v"}) b.reads("mixer in", name);
    for (const char* name : {"ogate_preact", "igate_preact", "fgate_preact"}) b.reads("mixer gate", name);
  }
  b.norms(norms_of(NormKind::layer));
  b.norm_inside("multihead_norm", "mixer output", 0, b.heads().heads == 0 ? 1 : b.heads().heads);
  b.norms(norms_of(NormKind::rms));
  b.writes("mixer out", "out_proj");
}

void xlstm_forward(Builder& b) {
  b.norms(norms_of(NormKind::rms));
  b.note("its mixers are recurrences: there are no attention heads");
  b.logits(1.0, b.config().number({"output_logit_soft_cap"}).value_or(30.0));
  b.embedding("token embedding", "embeddings");
  b.each_layer("blocks.{}.", [&] {
    b.norm("norm_mlstm", "mixer input");
    b.within("mlstm_layer.", [&] { gated_recurrence(b); });
    b.norm("norm_ffn", "mlp input");
    b.within("ffn.", [&] {
      if (!b.has("proj_up_gate_z.")) return gated_mlp(b, "proj_up_gate", "proj_up", "proj_down");
      const std::uint64_t inner = b.reads_parts({"mlp gate", "mlp in"}, "proj_up_gate_z");
      b.writes("mlp out", "proj_down", inner);
    });
  });
  b.norm("out_norm", "final");
  b.unembedding({"lm_head"}, false);
}

}  // namespace

extern const Architecture xlstm = {
    .name = "xlstm",
    .title = "xLSTM",
    .model_types = {"xlstm"},
    .signature = {"blocks.{}.mlstm_layer.multihead_norm.", "blocks.{}.norm_mlstm.", "blocks.{}.norm_ffn.",
                  "out_norm."},
    .without = {},
    .describe = xlstm_forward,
    .harmless = {"add_out_norm", "autocast_kernel_dtype", "chunk_size", "chunkwise_kernel", "embedding_dim",
                 "eps", "ffn_*", "gate_soft_cap", "inference_state_dtype", "max_inference_chunksize", "mode",
                 "norm_reduction_force_float32", "num_blocks", "qk_dim_factor", "return_last_states",
                 "sequence_kernel", "step_kernel", "v_dim_factor", "weight_mode"},
};

}  // namespace normscope::models::architectures
