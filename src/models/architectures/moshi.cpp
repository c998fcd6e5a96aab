#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void moshi_layer(Builder& b) {
  b.norm("input_layernorm", "attention input");
  const std::uint64_t attended =
      b.attention("self_attn.q_proj.linear", "self_attn.k_proj.linear", "self_attn.v_proj.linear");
  b.writes("attention out", "self_attn.o_proj.linear", attended);
  b.norm("post_attention_layernorm", "mlp input");
  const std::uint64_t inner = b.reads_parts({"mlp gate", "mlp in"}, "mlp.fc1");
  b.writes("mlp out", "mlp.fc2", inner);
}

// Text alone: embeddings of codebooks are added to those of the tokens where there are any.
void moshi_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-8, .eps_key = "rms_norm_eps"});
  b.rotary({});
  b.biases_by(Biased::attention, {});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  // Versions of transformers differ in whether it hides anything.
  const std::uint64_t window = b.config().positions({"sliding_window"}).value_or(0);
  const std::uint64_t longest = b.config().positions({"max_position_embeddings"}).value_or(0);
  if (window != 0 && window < longest) b.scores_not_modelled(fmt::format("sliding_window: {}", window));
  for (const char* part : {"depth_decoder.", "audio_encoder."}) {
    b.where(part,
            [&] { b.note(std::string(part).substr(0, std::string(part).size() - 1) + " is not modelled"); });
  }
  llama_stack(b, {.layer = moshi_layer});
}

}  // namespace

extern const Architecture moshi = {
    .name = "moshi",
    .title = "Moshi",
    .model_types = {"moshi"},
    .signature = {"layers.{}.self_attn.q_proj.linear.", "layers.{}.mlp.fc1.", "norm."},
    .without = {},
    .describe = moshi_forward,
    .harmless = {"audio_encoder_config", "audio_vocab_size", "depth_decoder_config", "num_codebooks"},
};

}  // namespace normscope::models::architectures
