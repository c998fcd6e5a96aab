#include "blocks.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "builder.hpp"

namespace normscope::models {

void branch_scale(Builder& b, std::string_view name) {
  if (!b.has(name)) return;
  b.other(name);
  b.writes_are_indirect();
}

void gated_experts(Builder& b, const ExpertNames& names) {
  b.reads("router", names.router);
  if (b.has("switch_mlp.")) {
    // MLX stacks experts, whatever their names were.
    b.each_expert("switch_mlp.gate_proj.weight", [&] {
      gated_mlp(b, "switch_mlp.gate_proj", "switch_mlp.up_proj", "switch_mlp.down_proj");
    });
    return;
  }
  b.each_expert(names.experts, [&] { gated_mlp(b, names.gate, names.in, names.out); });
}

std::optional<Routing> softmax_routing(const Builder& b, std::optional<bool> normalized) {
  const std::optional<std::uint64_t> used = b.config().count({"num_experts_per_tok"});
  if (!used) return {};
  return Routing{static_cast<std::size_t>(*used),
                 normalized ? *normalized : b.config().flag({"norm_topk_prob"}).value_or(false)};
}

std::optional<Routing> sigmoid_routing(const Builder& b, std::optional<bool> normalized) {
  if (!normalized) normalized = b.config().flag({"norm_topk_prob"}).value_or(true);
  std::optional<Routing> routing = softmax_routing(b, normalized);
  const std::uint64_t groups = b.config().count({"n_group"}).value_or(1);
  if (!routing || b.config().count({"topk_group"}).value_or(1) < groups) return {};
  routing->sigmoid = true;
  routing->scale = b.config().number({"routed_scaling_factor"}).value_or(1.0);
  routing->least_sum = 1e-20;
  return routing;
}

void router_correction(Builder& b, std::string_view name) {
  if (b.has(name)) b.parameter("router correction", name, ParameterForm::column);
}

void llama_experts(Builder& b) {
  if (!b.has("mlp.gate.")) return llama_mlp(b);
  b.within("mlp.", [&] {
    if (b.has("experts.gate_up_proj")) {
      b.reads("router", "gate");
      b.each_expert("experts.gate_up_proj", [&] {
        const std::uint64_t inner = b.reads_parts({"mlp gate", "mlp in"}, "experts.gate_up_proj");
        b.writes("mlp out", "experts.down_proj", inner);
      });
    } else {
      gated_experts(b);
    }
    for (const char* const name : {"gate.e_score_correction_bias", "moe_statics.e_score_correction_bias"}) {
      router_correction(b, name);
    }
    for (const std::string_view shared : {"shared_expert.", "shared_experts."}) {
      if (!b.has(shared)) continue;
      b.within(shared, [&] { gated_mlp(b, "gate_proj", "up_proj", "down_proj"); });
    }
    b.reads("shared expert gate", "shared_expert_gate", 0, Need::optional);
  });
}

void timm_block(Builder& b) {
  b.norm("norm1", "attention input");
  const std::uint64_t attended =
      b.has("attn.q.") ? b.attention("attn.q", "attn.k", "attn.v") : b.fused_attention("attn.qkv");
  if (b.has("attn.q_norm.")) {
    b.norm_of_heads("attn.q_norm", "query norm", "query");
    b.norm_of_heads("attn.k_norm", "key norm", "key");
  }
  b.writes("attention out", "attn.proj", attended);
  branch_scale(b, "ls1.gamma");
  b.norm("norm2", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "mlp.fc1");
  b.writes("mlp out", "mlp.fc2", inner);
  branch_scale(b, "ls2.gamma");
}

void vit_layer(Builder& b) {
  b.norm("layernorm_before", "attention input");
  const std::uint64_t attended =
      b.attention("attention.attention.query", "attention.attention.key", "attention.attention.value");
  b.writes("attention out", "attention.output.dense", attended);
  b.norm("layernorm_after", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "intermediate.dense");
  b.writes("mlp out", "output.dense", inner);
}

namespace {

// One matrix computes the time step and the input and output vectors of the state (B and C); each part has
// its own norm.
void norms_of_the_state(Builder& b, const MixerNames& names, bool own_eps) {
  const std::vector<std::uint64_t> steps = b.shape(fmt::format("{}.weight", names.step));
  const std::vector<std::uint64_t> states = b.shape(names.decay);
  const std::uint64_t rank = steps.size() == 2 ? steps[1] : 0;
  const std::uint64_t size = states.size() == 2 ? states[1] : 0;
  const auto norm = [&](const char* name, const char* role, std::uint64_t first, std::uint64_t count) {
    b.norm_of_outputs(name, role,
                      {.role = "state parameters", .map = names.state, .first = first, .count = count});
    if (own_eps) b.last_eps(1e-6, {"mixer_rms_eps"});
  };
  norm("dt_layernorm", "time step norm", 0, rank);
  b.reads("time step", names.step);
  norm("b_layernorm", "state norm", rank, size);
  b.reads_are_indirect();
  norm("c_layernorm", "state norm", rank + size, size);
  b.reads_are_indirect();
}

}  // namespace

void state_space_mixer(Builder& b, StateNorms norms, const MixerNames& names) {
  for (const char* part : {names.convolution, names.state, names.step}) {
    b.other(fmt::format("{}.weight", part));
    b.other(fmt::format("{}.bias", part));
  }
  for (const char* name : {"dt_bias", names.decay, names.skip}) b.other(name);
  b.reads("mixer in", names.in);
  if (!b.has(fmt::format("{}.", names.norm))) {
    if (norms == StateNorms::with_gains) norms_of_the_state(b, names, false);
    if (norms == StateNorms::without_parameters) {
      b.without_parameters([&] { norms_of_the_state(b, names, names.own_eps); });
    }
    b.writes("mixer out", names.out);
    return;
  }
  // Mamba 2 normalizes the gated output of the state space. A gain with two axes has a row for each group.
  const std::vector<std::uint64_t> gain = b.shape(fmt::format("{}.weight", names.norm));
  b.norm_inside(names.norm, "mixer output", gain.empty() ? 0 : gain.back(), names.norm_groups);
  if (names.norm_eps) b.last_eps(*names.norm_eps, {});
  if (!names.norm_before_gate) b.reads("mixer out", names.out);
  b.writes("mixer out", names.out);
}

void delta_net(Builder& b) {
  for (const char* name :
       {"conv1d.weight", "conv1d.bias", "q_conv1d.weight", "k_conv1d.weight", "v_conv1d.weight", "A_log"}) {
    if (b.has(name)) b.parameter(name, name, ParameterForm::row);
  }
  if (b.has("in_proj_qkvz.")) {
    b.reads("mixer in", "in_proj_qkvz");
    b.reads("state parameters", "in_proj_ba");
    b.parameter("dt_bias", "dt_bias", ParameterForm::row);
  } else if (b.has("in_proj_qkv.")) {
    b.reads("mixer in", "in_proj_qkv");
    b.reads("mixer gate", "in_proj_z");
    b.reads("state parameters", "in_proj_b");
    b.reads_with_bias("time step", "in_proj_a", "dt_bias");
  } else {
    for (const char* name : {"q_proj", "k_proj", "v_proj"}) b.reads("mixer in", name);
    b.reads("mixer gate", "g_proj");
    b.reads("state parameters", "b_proj");
    b.reads_with_bias("time step", "a_proj", "dt_bias");
  }
  const bool olmo = b.has("o_norm.");
  b.gains_as_stored([&] { b.norm_inside(olmo ? "o_norm" : "norm", "mixer output", 0); });
  if (olmo) b.last_eps(1e-5, {});
  b.writes("mixer out", olmo ? "o_proj" : "out_proj");
}

namespace {

bool states_norm_first(const Builder& b) { return b.config().has({"norm_first"}); }

// A branch between its norm and the addition, with the norm before or behind.
template <class Branch>
void sublayer(Builder& b, bool before, const char* norm, const char* role_before, const char* role_behind,
              const Branch& branch) {
  if (before) b.norm(norm, role_before);
  branch();
  if (!before) b.norm(norm, role_behind);
}

void self_attention(Builder& b, bool before) {
  sublayer(b, before, "norm1", "attention input", "attention output", [&] {
    const std::uint64_t attended = b.fused_attention("self_attn.in_proj_weight");
    b.writes("attention out", "self_attn.out_proj", attended);
  });
}

void mlp(Builder& b, bool before, const char* norm) {
  sublayer(b, before, norm, "mlp input", "mlp output", [&] {
    const std::uint64_t inner = b.reads("mlp in", "linear1");
    b.writes("mlp out", "linear2", inner);
  });
}

void begin(Builder& b) {
  const std::vector<std::uint64_t> gain = b.shape("layers.0.norm1.weight");
  b.new_stream();
  b.stream(gain.size() == 1 ? gain[0] : 0);
  b.writes_are_indirect();
}

void end(Builder& b) {
  if (b.has("norm.")) b.norm("norm", "final", Placement::pre);
  b.reads_are_indirect();
}

}  // namespace

bool torch_norm_first(Builder& b, bool assumed) {
  const bool before = b.config().flag({"norm_first"}).value_or(assumed);
  b.norms({.kind = NormKind::layer, .placement = before ? Placement::pre : Placement::post, .eps = 1e-5});
  if (!states_norm_first(b)) {
    b.note(before ? "norm_first is assumed, because the stack ends with a norm: no tensor shows it"
                  : "norm_first=False, torch's default, is assumed: no tensor shows it");
    b.scores_not_modelled("norm_first, which no configuration states");
  }
  b.note("only the stack of torch.nn is described: what is around it is the model's own code");
  return before;
}

void torch_encoder_stack(Builder& b, bool before) {
  begin(b);
  const auto layer = [&] {
    self_attention(b, before);
    mlp(b, before, "norm2");
  };
  b.each_layer("layers.{}.", layer, {"num_encoder_layers"});
  end(b);
}

void torch_decoder_stack(Builder& b, bool before) {
  begin(b);
  const auto layer = [&] {
    self_attention(b, before);
    sublayer(b, before, "norm2", "cross-attention input", "cross-attention output", [&] {
      const std::uint64_t attended = b.fused_cross_attention("multihead_attn.in_proj_weight");
      b.writes("cross-attention out", "multihead_attn.out_proj", attended);
    });
    mlp(b, before, "norm3");
  };
  b.each_layer("layers.{}.", layer, {"num_decoder_layers"});
  end(b);
}

void torch_finish(Builder& b) {
  if (!states_norm_first(b)) b.connections_are_assumed();
}

namespace {

void bart_mlp(Builder& b, const BartStyle& style) {
  if (style.before) b.norm("final_layer_norm", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", style.mlp_in);
  b.writes("mlp out", style.mlp_out, inner);
  if (!style.before) b.norm("final_layer_norm", "mlp output");
}

void bart_self_attention(Builder& b, bool before) {
  if (before) b.norm("self_attn_layer_norm", "attention input");
  const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  b.writes("attention out", "self_attn.out_proj", attended);
  if (!before) b.norm("self_attn_layer_norm", "attention output");
}

// The encoder and the decoder may differ in the number of heads.
void bart_heads(Builder& b, Config::Keys keys) {
  const std::uint64_t usual = b.config().count(Config::heads_keys).value_or(0);
  b.heads() = {.heads = b.config().count(keys).value_or(usual)};
}

}  // namespace

void bart_encoder_layers(Builder& b, const BartStyle& style) {
  bart_heads(b, {"encoder_attention_heads"});
  const auto layer = [&] {
    bart_self_attention(b, style.before);
    bart_mlp(b, style);
  };
  b.each_layer("layers.{}.", layer, {"encoder_layers"});
}

void bart_decoder_layers(Builder& b, const BartStyle& style) {
  bart_heads(b, {"decoder_attention_heads"});
  const auto layer = [&] {
    bart_self_attention(b, style.before);
    if (style.before) b.norm("encoder_attn_layer_norm", "cross-attention input");
    const std::uint64_t attended =
        b.cross_attention("encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj");
    b.writes("cross-attention out", "encoder_attn.out_proj", attended);
    if (!style.before) b.norm("encoder_attn_layer_norm", "cross-attention output");
    bart_mlp(b, style);
  };
  b.each_layer("layers.{}.", layer, {"decoder_layers"});
}

void norms_of_queries_and_keys(Builder& b, std::string_view query, std::string_view key) {
  b.norm_of_heads(query, "query norm", "query");
  b.norm_of_heads(key, "key norm", "key");
}

void llama_projections(Builder& b, std::string_view out) {
  const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  // Norms that are stored and switched off are tensors that nothing describes.
  if (b.has("self_attn.q_norm.") && b.config().flag({"use_qk_norm"}).value_or(true)) {
    norms_of_queries_and_keys(b, "self_attn.q_norm", "self_attn.k_norm");
  }
  for (const char* table : {"self_attn.rotary_emb.cos_cached", "self_attn.rotary_emb.sin_cached"})
    b.buffer(table);
  b.writes("attention out", out, attended);
}

void expect_norms_of_heads(Builder& b) {
  const bool stated = b.config().flag({"use_qk_norm"}).value_or(false);
  if (stated && !b.has("self_attn.q_norm.")) {
    norms_of_queries_and_keys(b, "self_attn.q_norm", "self_attn.k_norm");
  }
}

void llama_attention(Builder& b) {
  b.norm("input_layernorm", "attention input");
  llama_projections(b);
}

void gated_mlp(Builder& b, std::string_view gate, std::string_view in, std::string_view out) {
  const std::uint64_t inner = b.reads("mlp gate", gate);
  b.reads("mlp in", in, inner);
  b.writes("mlp out", out, inner);
}

void llama_mlp(Builder& b) {
  if (b.has("mlp.gate_up_proj.")) {
    const std::uint64_t inner = b.reads_parts({"mlp gate", "mlp in"}, "mlp.gate_up_proj");
    b.writes("mlp out", "mlp.down_proj", inner);
  } else {
    gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
  }
}

void llama_branches_with_norms(Builder& b) {
  b.branch();
  llama_projections(b);
  b.norm_of_branch("post_attention_layernorm", "attention output");
  b.branch();
  llama_mlp(b);
  b.norm_of_branch("post_feedforward_layernorm", "mlp output");
}

void llama_stack(Builder& b, const LlamaStyle& style) {
  b.embedding("token embedding", "embed_tokens");
  b.each_layer("layers.{}.", [&] {
    if (style.layer != nullptr) {
      style.layer(b);
    } else {
      llama_attention(b);
      b.rotary_buffer("self_attn.rotary_emb.inv_freq");
      b.norm("post_attention_layernorm", "mlp input");
      llama_mlp(b);
    }
  });
  b.norm(style.final_norm, "final");
  b.unembedding({"lm_head"}, style.tied);
  if (!style.biased_head) b.biases_by(Biased::unembedding, {"lm_head_bias"});
}

namespace {

void clip_norms(Builder& b, ClipFamily family) {
  b.norms({.kind = NormKind::layer,
           .placement = Placement::pre,
           .eps = family == ClipFamily::siglip ? 1e-6 : 1e-5,
           .eps_key = "layer_norm_eps"});
}

void clip_layers(Builder& b) {
  b.each_layer("encoder.layers.{}.", [&] {
    b.norm("layer_norm1", "attention input");
    const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.writes("attention out", "self_attn.out_proj", attended);
    b.norm("layer_norm2", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "mlp.fc1");
    b.writes("mlp out", "mlp.fc2", inner);
  });
}

// A learned query pools the tokens: keys and values read their norm.
void pooling_head(Builder& b) {
  const std::uint64_t width = b.width();
  b.other("head.probe");
  b.reads_part("pooling key and value", "head.attention.in_proj_weight", width, 2 * width);
  b.new_stream();
  b.writes("pooling out", "head.attention.out_proj");
  b.norm("head.layernorm", "pooling mlp input");
  const std::uint64_t inner = b.reads("mlp in", "head.mlp.fc1");
  b.writes("mlp out", "head.mlp.fc2", inner);
}

}  // namespace

ClipFamily clip_family(const Builder& b) {
  const std::string type = b.model_type();
  if (!type.empty()) return type.starts_with("siglip") ? ClipFamily::siglip : ClipFamily::clip;
  return b.has("text_model.head.") || b.has("vision_model.head.") ? ClipFamily::siglip : ClipFamily::clip;
}

void clip_vision_tower(Builder& b, ClipFamily family) {
  clip_norms(b, family);
  b.new_stream();
  b.stack("vision");
  b.within(b.has("vision_model.") ? "vision_model." : "", [&] {
    b.buffer("embeddings.position_ids");
    b.embedding("class token", "embeddings.class_embedding", Need::optional);
    b.input_map("patch embedding", "embeddings.patch_embedding");
    if (b.model_type().starts_with("mlcd")) {
      b.other("class_pos_emb");
      b.ignores({"rope_parameters"});
      b.scores_not_modelled("rotation by row and column");
    } else {
      b.embedding("position embedding", "embeddings.position_embedding");
    }
    for (const char* const name : {"pre_layrnorm", "pre_layernorm"}) {
      if (b.has(std::string(name) + ".")) b.norm(name, "embedding", Placement::post);
    }
    clip_layers(b);
    // OWL-ViT normalizes the class token, and then all of them.
    b.applications(b.model_type().starts_with("owl") ? 2 : 1);
    b.norm("post_layernorm", "final");
    b.applications(1);
    if (b.has("head.")) pooling_head(b);
  });
  b.where("visual_projection", [&] { b.reads("projection", ""); });
  b.where("multi_modal_projector.linear", [&] { b.reads("projection", "", 0, Need::optional); });
}

void clip_text_tower(Builder& b, ClipFamily family) {
  clip_norms(b, family);
  b.new_stream();
  b.stack("text");
  b.within(b.has("text_model.") ? "text_model." : "", [&] {
    b.buffer("embeddings.position_ids");
    b.embedding("token embedding", "embeddings.token_embedding");
    b.embedding("position embedding", "embeddings.position_embedding");
    clip_layers(b);
    b.norm("final_layer_norm", "final");
    if (b.has("head.")) b.reads("projection", "head");
  });
  if (b.has("text_projection.")) b.reads("projection", "text_projection");
}

void latent_attention(Builder& b, const std::string& keys_scaled) {
  constexpr double kEps = 1e-6;
  const std::uint64_t value = b.config().count({"v_head_dim"}).value_or(0);
  const std::uint64_t latent = b.config().count({"kv_lora_rank"}).value_or(0);
  if (b.has("q_a_proj.")) {
    const std::uint64_t width = b.reads("query latent", "q_a_proj");
    b.norm_of_map("q_a_layernorm", "query latent", "query latent", width, [&] {
      b.last_eps(kEps, {});
      b.queries("q_b_proj");
    });
  } else {
    b.queries("q_proj");
  }
  b.reads("key and value latent", "kv_a_proj_with_mqa");
  b.norm_of_map("kv_a_layernorm", "key and value latent", "key and value latent", latent, [&] {
    b.last_eps(kEps, {});
    b.reads_scaled(keys_scaled, [&] { b.reads("key and value", "kv_b_proj"); });
  });
  b.rotary_buffer("rotary_emb.inv_freq");
  b.writes("attention out", "o_proj", b.heads().heads * value);
}

namespace {

// ConvBERT's convolution, whose kernel depends on the queries.
void convolution_beside_heads(Builder& b) {
  b.within("attention.self.", [&] {
    b.reads("mixer in", "conv_out_layer");
    for (const char* name :
         {"key_conv_attn_layer.depthwise", "key_conv_attn_layer.pointwise", "conv_kernel_layer"})
      b.other(std::string(name) + ".weight");
    for (const char* name : {"key_conv_attn_layer.bias", "conv_kernel_layer.bias"}) b.other(name);
  });
  b.reads_are_indirect();
}

}  // namespace

void bert_layers(Builder& b) {
  b.each_layer("encoder.layer.{}.", [&] {
    const std::uint64_t attended =
        b.attention("attention.self.query", "attention.self.key", "attention.self.value");
    const bool convolves = b.has("attention.self.conv_out_layer.");
    if (convolves) convolution_beside_heads(b);
    b.writes("attention out", "attention.output.dense", convolves ? 0 : attended);
    b.norm("attention.output.LayerNorm", "attention output");
    const std::uint64_t inner = b.reads("mlp in", "intermediate.dense");
    b.writes("mlp out", "output.dense", inner);
    b.norm("output.LayerNorm", "mlp output");
  });
}

}  // namespace normscope::models
