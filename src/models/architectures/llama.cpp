#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

double published_eps(const std::string& type) {
  if (type == "helium") return 1e-8;
  const bool as_first_llama = type == "ernie4_5" || type == "eurobert" || type == "cwm" ||
                              type == "ministral3" || type == "internlm3" || type == "iquestcoder" ||
                              type.starts_with("qwen2_vl") || type.starts_with("qwen2_5_vl");
  return as_first_llama ? 1e-5 : 1e-6;
}

// CWM's class has a scaling of its own, and windows in three layers of four, where none are stated.
void cwm_attention(Builder& b) {
  b.rotary({.theta = 1e6, .must_state = true});
  b.windows({.period = 4, .first_is_full = true});
}

// Ministral 3's class has a scaling of its own where none is stated, with a factor of queries that grows with
// their positions.
void ministral3_attention(Builder& b) {
  b.rotary({.theta = 1e4});
  b.windows({.kinds_key = ""});
  if (!b.config().has({"rope_parameters"})) b.scores_not_modelled("rope_parameters, which are not stated");
}

// Qwen 2 has biases of queries, keys and values whatever its configuration says, Seed-OSS unless it says so.
void llama_biases(Builder& b, const std::string& type) {
  if (type == "internlm3" || type == "iquestcoder") return;
  if (!type.starts_with("qwen3")) b.biases_by(Biased::norms_of_heads, {});
  if (type == "ernie4_5") {
    b.biases_by(Biased::attention, {"use_bias"});
    b.biases_by(Biased::mlps, {"use_bias"});
    return;
  }
  const bool always = type.starts_with("qwen2") || type == "seed_oss";
  if (type == "seed_oss") {
    b.biases_by(Biased::attention_output, {"attention_out_bias"});
  } else if (always || type == "helium") {
    b.biases_by(Biased::attention_output, {});
  }
  const bool reads_none = type.starts_with("minist") || type == "mistral" || type == "cwm";
  if (reads_none) {
    b.biases_by(Biased::attention, {});
  } else if (!always) {
    b.biases_by(Biased::attention, {"attention_bias"});
  }
  if (type.starts_with("qwen") || (reads_none && type != "cwm")) {
    b.biases_by(Biased::mlps, {});
  } else {
    b.biases_by(Biased::mlps, {"mlp_bias"});
  }
}

LensBlocks llama_settings(Builder& b) {
  const std::string type = b.model_type();
  b.norms({.kind = NormKind::rms,
           .placement = Placement::pre,
           .eps = published_eps(type),
           .eps_key = "rms_norm_eps"});
  if (type == "eurobert") {
    b.scores_not_modelled("rotary positions without a causal mask");
  } else {
    b.decoder({.activation = "silu"});
  }
  if (type == "smollm3") {
    b.rotary({.theta = 2e6, .still_every = 4});
  } else if (type == "ernie4_5" || type == "helium") {
    b.rotary({.interleaved = true, .theta = type == "helium" ? 1e5 : 5e5});
  } else {
    b.rotary({});
  }
  if (type == "mistral") b.windows({.kinds_key = ""});
  if (type == "ministral") b.windows({});
  if (type == "cwm") cwm_attention(b);
  if (type == "ministral3") ministral3_attention(b);
  const bool sees = type.starts_with("qwen") && type.find("_vl") != std::string::npos;
  if (sees) {
    b.rotary({.theta = type.starts_with("qwen3") ? 5e5 : 1e6, .sections = true});
    b.note("scores are bounded for text: the position of a part of an image is three numbers");
  }
  llama_biases(b, type);
  const bool qwen2 = type.starts_with("qwen2") || type == "qwen3";
  if (type.starts_with("qwen2")) b.ignores({"attention_bias"});  // queries, keys and values always have one
  if (qwen2 || type == "smollm3") b.windows({.must_be_enabled = true});
  b.grouped_queries();
  return LensBlocks::sequential;
}

// Gemma 1 ties its embeddings, has no norms of queries, and biases of queries only beside those of outputs.
bool may_be_gemma(const Builder& b) {
  const std::string attention = "layers.0.self_attn.";
  return b.config().model_types().empty() && !b.has_own_unembedding() && !b.has(attention + "q_norm") &&
         b.has(attention + "q_proj.bias") == b.has(attention + "o_proj.bias");
}

void llama_forward(Builder& b) {
  llama_settings(b);
  b.head_dim_from("layers.0.self_attn.q_norm");
  const bool euro = b.model_type() == "eurobert";
  llama_stack(b, {.tied = b.model_type() == "ernie4_5", .biased_head = euro});
  if (euro) b.biases_by(Biased::unembedding, {"mlp_bias"});
  if (may_be_gemma(b)) {
    b.norms_in_doubt(
        "without a configuration this could be Gemma 1, which has the same tensors but stores gain - 1 "
        "(state "
        "the architecture)");
  }
}

}  // namespace

extern const Architecture llama = {
    .name = "llama",
    .title = "Llama, Mistral or Qwen",
    .model_types = {"llama", "mistral", "ministral", "ministral3", "qwen2", "qwen3", "smollm3", "seed_oss",
                    "ernie4_5", "helium", "cwm", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text",
                    "qwen3_vl_text", "eurobert", "internlm3", "iquestcoder"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.",
                  "layers.{}.post_attention_layernorm.", "layers.{}.mlp.gate_proj."},
    .without = {"layers.{}.pre_feedforward_layernorm."},
    .describe = llama_forward,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_llama",
    .in_transformer_lens = llama_settings,
};

}  // namespace normscope::models::architectures
