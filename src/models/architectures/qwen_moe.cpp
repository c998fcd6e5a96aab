#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Llama with experts in place of some MLPs.
void qwen_moe_layer(Builder& b) {
  if (b.predicts_further()) return;
  llama_attention(b);
  expect_norms_of_heads(b);
  b.norm("post_attention_layernorm", "mlp input");
  llama_experts(b);
  router_correction(b, "mlp.e_score_correction_bias");  // as K-EXAONE names it
}

std::optional<Routing> ernie_routing(const Builder& b) {
  const std::optional<std::uint64_t> used = b.config().count({"moe_k"});
  if (!used) return {};
  return Routing{.used = static_cast<std::size_t>(*used),
                 .normalized = true,
                 .least_sum = b.config().number({"moe_norm_min"}).value_or(1e-12)};
}

// Weights of chosen experts add up to 1 in Qwen 3 VL whatever the configuration says, in Mellum unless it
// says otherwise.
std::optional<Routing> qwen_routing(const Builder& b, const std::string& type) {
  if (type == "qwen3_vl_moe_text") return softmax_routing(b, true);
  if (type == "mellum") return softmax_routing(b, b.config().flag({"norm_topk_prob"}).value_or(true));
  return softmax_routing(b);
}

std::optional<Routing> exaone_routing(const Builder& b) {
  std::optional<Routing> routing = sigmoid_routing(b);
  if (routing && !b.config().has({"routed_scaling_factor"})) routing->scale = 2.5;
  return routing;
}

// The pattern may be letters, which the class does not read: a list states the kinds of layers then.
void exaone_windows(Builder& b) {
  const bool letters = b.config().fields()["sliding_window_pattern"].starts_with('"');
  b.windows({.period = letters ? std::uint64_t{0} : std::uint64_t{4}});
  if (letters) b.ignores({"sliding_window_pattern"});
  if (letters && !b.config().has({"layer_types"})) b.scores_not_modelled("layer_types, which are not stated");
  // The class has a size of its own.
  if (!b.config().states({"sliding_window"})) b.scores_not_modelled("sliding_window, which is not stated");
}

void qwen_moe_norms_of_heads(Builder& b, const std::string& type) {
  if (type == "glm4_moe") {
    b.biases_by(Biased::norms_of_heads, {"use_qk_norm"});
  } else if (type == "qwen2_moe" || type == "ernie4_5_moe" || type == "solar_open" ||
             type == "glm4v_moe_text") {
    b.biases_by(Biased::norms_of_heads, {});
  }
}

// Qwen 2 MoE has biases of queries, keys and values unless it says otherwise.
void qwen_moe_biases(Builder& b, const std::string& type) {
  if (type == "ernie4_5_moe") {
    for (const Biased of : {Biased::attention, Biased::mlps, Biased::unembedding}) {
      b.biases_by(of, {"use_bias"});
    }
    return;
  }
  const bool of_outputs = type.starts_with("qwen3") || type == "olmoe" || type == "mellum";
  if (!of_outputs) b.biases_by(Biased::attention_output, {});
  if (type == "exaone_moe") {
    b.biases_by(Biased::attention, {});
  } else if (type != "qwen2_moe" && type != "glm4v_moe_text") {
    b.biases_by(Biased::attention, {"attention_bias"});
  }
  b.biases_by(Biased::mlps, {});
}

void qwen_moe_forward(Builder& b) {
  const std::string type = b.model_type();
  b.norms({.kind = NormKind::rms,
           .placement = Placement::pre,
           .eps = type.starts_with("qwen") || type == "mellum" ? 1e-6 : 1e-5,
           .eps_key = "rms_norm_eps"});
  const bool exaone = type == "exaone_moe";
  const bool glm = type.starts_with("glm4");
  const std::optional<double> half = glm ? std::optional(0.5) : std::nullopt;
  b.decoder({.activation = "silu",
             .routing = glm || type == "solar_open" ? sigmoid_routing(b)
                        : exaone                    ? exaone_routing(b)
                        : type == "ernie4_5_moe"    ? ernie_routing(b)
                                                    : qwen_routing(b, type)});
  qwen_moe_biases(b, type);
  qwen_moe_norms_of_heads(b, type);
  if (exaone) exaone_windows(b);
  if (type == "olmoe") b.scores({.clip = b.config().number({"clip_qkv"})});
  b.grouped_queries();
  const bool sees = type == "qwen3_vl_moe_text" || type == "glm4v_moe_text";
  if (sees) {
    b.rotary({.theta = glm ? 1e4 : 5e5, .portion = half, .sections = true});
    b.ignores({"sliding_window"});
    b.note("scores are bounded for text: the position of a part of an image is three numbers");
  } else if (type == "ernie4_5_moe") {
    b.rotary({.interleaved = true, .theta = 5e5});
  } else {
    b.rotary({.theta = type == "mellum"       ? 0.0
                       : type == "solar_open" ? 1e6
                                              : 1e4,
              .portion = half,
              .by_kind = type == "mellum",
              .windows_only = exaone && b.config().has({"sliding_window"})});
  }
  // The class has a base for each kind of layer.
  if (type == "mellum" && !b.config().has({"rope_parameters"})) {
    b.scores_not_modelled("rope_parameters, which are not stated");
  }
  if (type.starts_with("qwen") && !sees) b.windows({.must_be_enabled = true});
  if (type == "mellum") b.windows({});
  if (b.has("layers.0.self_attn.q_norm.") && type != "olmoe" && !type.empty())
    b.head_dim_from("layers.0.self_attn.q_norm");
  const bool ernie = type == "ernie4_5_moe";
  llama_stack(b, {.tied = ernie, .layer = qwen_moe_layer, .biased_head = ernie});
}

}  // namespace

extern const Architecture qwen_moe = {
    .name = "qwen_moe",
    .title = "Qwen-MoE, OLMoE, GLM-4.5, ERNIE 4.5 MoE or K-EXAONE",
    .model_types = {"qwen2_moe", "qwen3_moe", "olmoe", "glm4_moe", "qwen3_vl_moe_text", "ernie4_5_moe",
                    "solar_open", "mellum", "exaone_moe", "glm4v_moe_text"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.", "layers.{}.mlp.experts.",
                  "layers.{}.mlp.gate."},
    .without = {},
    .describe = qwen_moe_forward,
    .harmless = {"num_nextn_predict_layers", "mlp_layer_types", "mtp_layer_types", "mtp_mlp_layer_types",
                 "num_shared_experts"},
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_llama",
};

}  // namespace normscope::models::architectures
