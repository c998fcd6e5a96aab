#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void gguf_mlp(Builder& b) {
  if (!b.has("ffn_gate_inp.")) return gated_mlp(b, "ffn_gate", "ffn_up", "ffn_down");
  b.reads("router", "ffn_gate_inp");
  b.each_expert("ffn_gate_exps.weight",
                [&] { gated_mlp(b, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"); });
}

// llama.cpp stores gains as they are used, Gemma's as well, and orders the rows of Llama's queries and keys
// so that the two coordinates of a rotary pair are neighbours. In the other models of this file they are half
// a head apart.
void gguf_llama_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5});
  const bool is_gemma = b.model_type() == "gemma";
  b.decoder({.activation = is_gemma ? "gelu_pytorch_tanh" : "silu",
             .fixed_activation = true,
             .embedding_times_root = is_gemma});
  b.rotary({.interleaved = b.model_type() == "llama",
            .dims = static_cast<std::size_t>(b.config().count({"rope_dimension_count"}).value_or(0))});
  b.grouped_queries();
  b.head_dim_from("blk.0.attn_q_norm");
  b.embedding("token embedding", "token_embd");
  b.each_layer("blk.{}.", [&] {
    b.norm("attn_norm", "attention input");
    const std::uint64_t attended = b.attention("attn_q", "attn_k", "attn_v");
    if (b.has("attn_q_norm.")) norms_of_queries_and_keys(b, "attn_q_norm", "attn_k_norm");
    b.writes("attention out", "attn_output", attended);
    b.norm("ffn_norm", "mlp input");
    gguf_mlp(b);
    b.buffer("attn_rot_embd.weight");
  });
  b.rotary_divisors("rope_freqs.weight");
  b.norm("output_norm", "final");
  b.unembedding({"output"}, true);
}

}  // namespace

extern const Architecture gguf_llama = {
    .name = "gguf_llama",
    .title = "Llama, Mistral, Qwen or Gemma 1 in llama.cpp's names",
    .model_types = {"llama", "qwen2", "qwen3", "gemma"},
    .signature = {"blk.{}.attn_q.", "blk.{}.attn_norm.", "blk.{}.ffn_norm."},
    .without = {},
    .describe = gguf_llama_forward,
    .harmless = {"tensor_data_layout"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
