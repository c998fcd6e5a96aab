#include <string>

#include <fmt/format.h>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The last layers attend to the keys and values of the last earlier layer of their kind.
struct Shared {
  std::uint64_t layers = 0;
  int first = 0;
};

Shared shared_layers(Builder& b, std::uint64_t published) {
  const bool states = b.config().states({"num_kv_shared_layers"});
  const std::uint64_t layers =
      b.config().positions({"num_kv_shared_layers"}).value_or(states ? 0 : published);
  const std::uint64_t all = b.config().count({"num_hidden_layers"}).value_or(0);
  return {layers, static_cast<int>(all > layers ? all - layers : 0)};
}

int layer_of_keys(const Builder& b, const Shared& shared) {
  constexpr int kMost = 100;  // layers of other kinds between them, far above every model
  int layer = shared.first - 1;
  for (const std::string kind = b.layer_kind(b.layer()); layer > shared.first - kMost; --layer) {
    if (layer < 0 || b.layer_kind(layer) == kind) return layer;
  }
  return -1;
}

// Queries, keys and values pass a norm each, that of the values without a gain. Gemma 4 has heads of another
// width in layers without a window, and may use keys as values there.
void attention(Builder& b, const Shared& shared) {
  const auto under = [](const char* part) { return std::string("self_attn.") + part; };
  b.branch();
  const std::vector<std::uint64_t> gain = b.shape(under("q_norm.weight"));
  if (gain.size() == 1) b.heads().head_dim = gain[0];
  std::uint64_t attended = 0;
  if (shared.layers != 0 && b.layer() >= shared.first) {
    b.scores_not_modelled(fmt::format("num_kv_shared_layers: {}", shared.layers));
    // Files may hold unused ones.
    for (const char* part : {"k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias", "k_norm.weight"})
      b.other(under(part));
    attended = b.queries(under("q_proj"));
    b.norm_of_heads(under("q_norm"), "query norm", "query");
    b.keys_of(layer_of_keys(b, shared));
  } else {
    b.heads().key_value_heads = 0;  // those of this layer, from its keys
    attended =
        b.attention(under("q_proj"), under("k_proj"), under(b.has(under("v_proj.")) ? "v_proj" : "k_proj"));
    norms_of_queries_and_keys(b, under("q_norm"), under("k_norm"));
    b.without_parameters([&] { b.norm_of_heads(under("v_norm"), "value norm", "value"); });
  }
  b.writes("attention out", under("o_proj"), attended);
  b.norm_of_branch("post_attention_layernorm", "attention output");
}

// A norm of the stream whose output is scaled before a router reads it.
void norm_of_router(Builder& b, std::string_view name) {
  b.norm_of_map(name, "router input", {}, b.width(), [&] { b.reads_are_indirect(); });
}

// Before the layers, one map of the embedding gives each layer an input of its own.
void inputs_of_layers(Builder& b) {
  const std::vector<std::uint64_t> gain = b.shape("per_layer_projection_norm.weight");
  if (gain.empty()) return;
  b.other("embed_tokens_per_layer.weight");
  b.norm_of_outputs("per_layer_projection_norm", "per-layer input",
                    {.role = "per-layer input", .map = "per_layer_model_projection", .each = gain[0]});
  b.has_other_readers();
  b.reads_the_stream();
}

// A layer's own input gates a map of the stream.
void input_of_layer(Builder& b) {
  if (!b.has("per_layer_input_gate.")) return;
  b.reads_the_stream();
  b.branch();
  const std::uint64_t inner = b.reads("per-layer gate", "per_layer_input_gate");
  b.writes("per-layer out", "per_layer_projection", inner);
  b.norm_of_branch("post_per_layer_input_norm", "per-layer output");
}

// AltUp keeps several versions of the stream, which each layer mixes by coefficients made from one of them.
void mix_streams(Builder& b) {
  for (const char* name : {"altup.modality_router.weight", "altup.prediction_coefs.weight",
                           "altup.correction_coefs.weight", "altup.correct_output_scale"}) {
    b.other(name);
  }
  b.applications(2);
  norm_of_router(b, "altup.router_norm");
  b.applications(1);
  b.writes_are_indirect();
}

// A branch of low rank that reads the attention's input, and that input as well.
void laurel(Builder& b) {
  b.norm_is_added();
  b.branch();
  const std::uint64_t rank = b.reads("laurel in", "laurel.linear_left");
  b.writes("laurel out", "laurel.linear_right", rank);
  b.norm_of_branch("laurel.post_laurel_norm", "laurel output");
}

void gemma3n_layer(Builder& b, const Shared& shared) {
  mix_streams(b);
  b.norm("input_layernorm", "attention input");
  laurel(b);
  attention(b, shared);
  b.norm("pre_feedforward_layernorm", "mlp input");
  gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
  b.norm_of_branch("post_feedforward_layernorm", "mlp output");
  input_of_layer(b);
}

// Experts beside the MLP. Both read the stream behind norms of their own, and so does the router.
void experts_beside_mlp(Builder& b) {
  b.norm_of_branch("post_feedforward_layernorm_1", "mlp output");
  b.without_parameters([&] { norm_of_router(b, "router.norm"); });
  for (const char* name : {"router.proj.weight", "router.scale", "router.per_expert_scale"}) b.other(name);
  b.norm_beside("pre_feedforward_layernorm_2", "expert input");
  b.branch();
  b.each_expert("experts.gate_up_proj", [&] {
    const std::uint64_t inner = b.reads_parts({"mlp gate", "mlp in"}, "experts.gate_up_proj");
    b.writes("mlp out", "experts.down_proj", inner);
  });
  b.norm_of_branch("post_feedforward_layernorm_2", "expert output");
}

void gemma4_layer(Builder& b, const Shared& shared) {
  b.norm("input_layernorm", "attention input");
  attention(b, shared);
  b.norm("pre_feedforward_layernorm", "mlp input");
  gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
  if (b.has("router.")) experts_beside_mlp(b);
  b.norm_of_branch("post_feedforward_layernorm", "mlp output");
  input_of_layer(b);
  branch_scale(b, "layer_scalar");
}

// Fields that a layer may have for itself; the tensors tell the widths and numbers of its heads.
void flag_fields_of_layers(Builder& b) {
  const std::string section = "per_layer_config.";
  for (const auto& [path, value] : b.config().fields()) {
    const std::size_t at = path.find(section);
    if (at == std::string::npos || path.ends_with(".head_dim") || path.ends_with(".num_key_value_heads"))
      continue;
    b.scores_not_modelled(fmt::format("{}: {}", path.substr(at), value));
  }
}

void gemma4_scores(Builder& b) {
  if (!b.config().has({"rope_parameters"})) b.scores_not_modelled("rope_parameters: not stated");
  const std::string ahead = b.config().text({"use_bidirectional_attention"}).value_or("");
  if (ahead == "vision") {
    b.note("scores are bounded for text: the tokens of an image also see later tokens of the same image");
  } else if (!ahead.empty()) {
    b.scores_not_modelled("use_bidirectional_attention: " + ahead);
  }
  flag_fields_of_layers(b);
}

void gemma3n_forward(Builder& b) {
  const bool fourth = b.model_type().starts_with("gemma4");
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6, .eps_key = "rms_norm_eps"});
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  b.rotary({.theta = 1e6, .has_local_theta = true});
  b.windows({.period = fourth ? std::uint64_t{6} : std::uint64_t{5}, .last_is_full = fourth});
  b.scores({.scale = 1.0});
  b.logits(1.0, b.stated_number("final_logit_softcapping", fourth ? 0.0 : 30.0).value_or(0.0));
  if (fourth) {
    gemma4_scores(b);
  } else {
    b.note(
        "AltUp mixes several versions of the stream in each layer, which is not modelled: what writes to the "
        "norms that read the stream is known in part");
  }
  const Shared shared = shared_layers(b, fourth ? 0 : 15);
  b.embedding("token embedding", "embed_tokens");
  inputs_of_layers(b);
  for (const char* name : {"altup_projections.{}.", "altup_unembed_projections.{}."})
    b.each_part(name, [&] { b.other("weight"); });
  b.each_layer("layers.{}.", [&] {
    if (fourth) return gemma4_layer(b, shared);
    gemma3n_layer(b, shared);
  });
  if (!fourth) b.writes_are_indirect();
  b.norm("norm", "final");
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture gemma3n = {
    .name = "gemma3n",
    .title = "Gemma 3n or Gemma 4",
    .model_types = {"gemma3n", "gemma3n_text", "gemma4", "gemma4_text"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.pre_feedforward_layernorm.",
                  "layers.{}.post_feedforward_layernorm."},
    .without = {},
    .describe = gemma3n_forward,
    .harmless = {"activation_sparsity_pattern", "altup_*", "attention_k_eq_v", "audio_*", "enable_moe_block",
                 "global_head_dim", "hidden_size_per_layer_input", "laurel_rank",
                 "num_global_key_value_heads", "per_layer_config", "top_k_experts", "use_double_wide_mlp",
                 "vision_*"},
    .keeps_logits_within = {"gemma3n", "gemma4"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
