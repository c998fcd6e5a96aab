#include <cmath>
#include <cstdint>
#include <optional>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// No entry states the factor of scores ("query_pre_attn_scalar"). As in llama.cpp it is the root of the head
// width, but of the width per head in the two models of 27 billion parameters, known by their layers.
void gguf_gemma_scores(Builder& b, bool third) {
  const std::uint64_t layers = b.config().count({"num_hidden_layers"}).value_or(0);
  std::optional<double> scale;
  if (layers == (third ? 62U : 46U)) {
    const std::uint64_t width = b.config().count({"hidden_size"}).value_or(0);
    const std::uint64_t heads = b.config().count({"num_attention_heads"}).value_or(0);
    if (width != 0 && heads != 0) scale = 1.0 / std::sqrt(static_cast<double>(width / heads));
  }
  b.note("GGUF files of Gemma 2 and 3 do not state the scale of attention scores; llama.cpp's is taken");
  b.scores({.scale = scale,
            .soft_cap = third ? 0.0 : b.stated_number("attn_logit_softcapping", 50.0).value_or(0.0)});
}

// Gains are stored as they are used, unlike in Hugging Face's files.
void gguf_gemma_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6});
  b.decoder({.activation = "gelu_pytorch_tanh", .fixed_activation = true, .embedding_times_root = true});
  const bool first = b.model_type() == "gemma";
  const bool third = b.model_type() == "gemma3";
  b.rotary({.theta = third ? 1e6 : 1e4, .has_local_theta = third, .dims = gguf_rotary_dims(b)});
  if (!first) {
    b.windows({.period = third ? std::uint64_t{6} : std::uint64_t{2}});
    gguf_gemma_scores(b, third);
    b.logits(1.0, b.stated_number("final_logit_softcapping", third ? 0.0 : 30.0).value_or(0.0));
  }
  b.head_dim_from("blk.0.attn_q_norm");
  gguf_stack(b);
}

}  // namespace

extern const Architecture gguf_gemma = {
    .name = "gguf_gemma",
    .title = "Gemma in llama.cpp's names",
    .model_types = {"gemma", "gemma2", "gemma3"},
    .signature = {"blk.{}.attn_output.", "blk.{}.attn_norm.", "blk.{}.ffn_norm."},
    .without = {},
    .describe = gguf_gemma_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
