#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void mamba_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_epsilon"});
  // The code that its first files were made for has LayerNorm where this is false.
  b.ignores_value("rms_norm", "true");
  b.note("its mixers are state spaces: there are no attention heads");
  b.embedding("token embedding", b.has("embeddings.") ? "embeddings" : "embedding");
  b.biases_by(Biased::mixers, {"use_bias"});
  const bool without = b.model_type() == "falcon_mamba";
  b.each_layer("layers.{}.", [&] {
    b.norm("norm", "mixer input");
    b.within("mixer.",
             [&] { state_space_mixer(b, without ? StateNorms::without_parameters : StateNorms::none); });
  });
  b.norm("norm_f", "final");
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture mamba = {
    .name = "mamba",
    .title = "Mamba, Mamba 2 or Falcon Mamba",
    .model_types = {"mamba", "mamba2", "falcon_mamba"},
    .signature = {"layers.{}.mixer.in_proj.", "layers.{}.mixer.A_log", "layers.{}.norm."},
    .without = {},
    .describe = mamba_forward,
    .harmless = {"chunk_size", "conv_kernel", "expand", "fused_add_norm", "norm_before_gate",
                 "pad_vocab_size_multiple", "n_groups", "rescale_prenorm_residual", "residual_in_fp32",
                 "state_size", "time_step*", "use_associative_scan", "use_conv_bias", "use_mambapy"},
    .in_llama_cpp = "gguf_mamba",
};

}  // namespace normscope::models::architectures
