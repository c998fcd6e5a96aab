#include <cstdint>
#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// llama.cpp orders the rows of Llama's queries and keys so that the two coordinates of a rotary pair are
// neighbours, as they are in GLM-4. In Qwen, GLM-4.5 and Seed-OSS they are half a head apart. A second gating
// function is that of sigmoids.
void gguf_llama_forward(Builder& b) {
  const std::string type = b.model_type();
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5});
  const bool has_sigmoids = type == "glm4moe" && b.config().count({"expert_gating_func"}).value_or(2) == 2;
  b.decoder({.activation = "silu",
             .fixed_activation = true,
             .routing = has_sigmoids        ? sigmoid_routing(b)
                        : type == "glm4moe" ? std::nullopt
                                            : softmax_routing(b, type == "llama" || type == "qwen3moe")});
  const bool smollm = type == "smollm3";
  b.rotary({.interleaved = type == "llama" || type == "glm4" || smollm,
            .dims = gguf_rotary_dims(b),
            .still_every = smollm ? std::uint64_t{4} : std::uint64_t{0}});
  if (type.starts_with("qwen3") || type == "glm4moe") b.head_dim_from("blk.0.attn_q_norm");
  gguf_stack(b);
}

}  // namespace

extern const Architecture gguf_llama = {
    .name = "gguf_llama",
    .title = "Llama, Mistral, Mixtral, Qwen, OLMoE, GLM-4 and 4.5, SmolLM3 or Seed-OSS in llama.cpp's names",
    .model_types = {"llama", "qwen2", "qwen3", "qwen2moe", "qwen3moe", "olmoe", "glm4", "glm4moe", "smollm3",
                    "seed_oss"},
    .signature = {"blk.{}.attn_output.", "blk.{}.attn_norm."},
    .without = {},
    .describe = gguf_llama_forward,
    // Which layers have experts, and how many every token passes, the tensors show.
    .harmless = {"tensor_data_layout", "expert_*", "leading_dense_block_count"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
