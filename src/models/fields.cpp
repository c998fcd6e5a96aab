#include "fields.hpp"

#include <algorithm>
#include <array>

namespace normscope::models {

namespace {

// Whether `name` matches `pattern`, in which '*' stands for any characters.
bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  pattern.remove_prefix(star + 1);
  for (std::size_t at = std::min(star, name.size());; ++at) {
    if (matches(pattern, name.substr(at))) return true;
    if (at == name.size()) return false;
  }
}

// Fields that never affect what a model computes, but for rounding.
constexpr auto inert_fields = std::to_array<std::string_view>(
    {// names and versions
     "_name_or_path", "name_or_path", "_commit_hash", "_attn_implementation", "_attn_implementation_*",
     "attn_implementation", "_attn_implementation_internal", "_flash_attn_2_enabled", "use_flash_attn*",
     "transformers_version", "transformers.js_config", "torch_dtype", "dtype", "tokenizer_class",
     "finetuning_task", "task_specific_params", "problem_type", "id2label", "label2id", "num_labels",
     "prefix", "unsloth_fixed", "unsloth_version", "model_version", "is_llama_config", "_from_model_config",
     "language", "license",
     // training and numerics
     "*dropout*", "*pdrop", "drop_path*", "layerdrop", "initializer_*", "init_std", "gradient_checkpointing",
     "use_cache", "cache_implementation", "torchscript", "use_bfloat16", "pretraining_tp", "slow_but_exact",
     "reorder_and_upcast_attn", "chunk_size_feed_forward", "tf_legacy_loss",
     // generation
     "*_token_id", "*_token_ids", "output_attentions", "output_hidden_states", "output_scores",
     "return_dict*", "use_return_dict", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
     "num_return_sequences", "diversity_penalty", "temperature", "top_k", "top_p", "typical_p",
     "repetition_penalty", "length_penalty", "exponential_decay_length_penalty", "no_repeat_ngram_size",
     "encoder_no_repeat_ngram_size", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
     "min_length", "max_new_tokens", "remove_invalid_values"});

// Other fields that never affect scores or logits as functions of a norm's output: sizes that are known from
// the tensors, activations and inputs of the stream.
constexpr auto harmless_fields = std::to_array<std::string_view>(
    {"architectures", "model_type", "tie_encoder_decoder", "*_token_index", "pad_token_id",
     // sizes
     "vocab_size", "vocab_size_*", "hidden_size", "n_embd", "d_model", "intermediate_size", "n_inner",
     "ffn_dim", "d_ff", "ffn_hidden_size", "num_attention_heads", "n_head", "num_heads", "n_heads", "nhead",
     "num_key_value_heads", "head_dim", "num_hidden_layers", "n_layer", "num_layers", "n_layers", "depth",
     "max_position_embeddings", "n_positions", "n_ctx", "block_size", "max_seq_len", "max_sequence_length",
     "max_length", "context_length", "type_vocab_size", "word_embed_proj_dim", "embedding_size", "mlp_ratio",
     "image_size", "patch_size", "num_channels", "encoder_stride", "original_max_position_embeddings",
     "max_window_layers", "tie_word_embeddings",
     // mixtures of experts: which experts write to the stream, and how much
     "num_experts*", "num_local_experts", "n_routed_experts", "n_shared_experts", "moe_*", "router_*",
     "output_router_logits", "norm_topk_prob", "routed_scaling_factor", "scoring_func", "topk_*", "n_group",
     "seq_aux", "aux_loss_alpha", "ep_size", "first_k_dense_replace", "decoder_sparse_step",
     "mlp_only_layers", "shared_expert_intermediate_size", "input_jitter_noise",
     // biases: known from the tensors
     "attention_bias", "mlp_bias", "qkv_bias", "use_bias", "use_qkv_bias", "enable_bias", "bias",
     // activations and inputs of the stream
     "hidden_act", "hidden_activation", "activation_function", "add_cross_attention", "is_decoder",
     "is_encoder_decoder", "cross_attention_hidden_size", "decoder_start_token_id", "pooler_*", "summary_*",
     "classifier_*", "directionality", "output_past"});

struct Rule {
  std::string_view name;
  std::string_view neutral;  ///< the value without effect; empty if every value has one
  Effect effect = Effect::everything;
};

// Fields that affect scores or logits and that only some architectures model. Code that reads such a field
// models it; if it is not read, any value but the neutral one is reported as not modelled.
constexpr auto rules = std::to_array<Rule>({
    {"position_embedding_type", "absolute", Effect::scores},
    {"alibi", "false", Effect::scores},
    {"alibi_bias_max", "", Effect::scores},
    {"attn_config", "", Effect::scores},
    {"relative_attention*", "", Effect::scores},
    {"scale_attn_weights", "true", Effect::scores},
    {"scale_attn_by_inverse_layer_idx", "false", Effect::scores},
    {"attention_multiplier", "", Effect::scores},
    {"attn_scale*", "", Effect::scores},
    {"attention_scale*", "", Effect::scores},
    {"softmax_scale", "", Effect::scores},
    {"query_pre_attn_scalar", "", Effect::scores},
    {"attn_logit_softcapping", "", Effect::scores},
    {"sliding_window*", "", Effect::scores},
    {"_sliding_window*", "", Effect::scores},
    {"use_sliding_window", "false", Effect::scores},
    {"layer_types", "", Effect::scores},
    {"window_size", "", Effect::scores},
    {"attention_window_size", "", Effect::scores},
    {"attention_chunk_size", "", Effect::scores},
    {"attention_types", "", Effect::scores},
    {"use_bidirectional_attention", "false", Effect::scores},
    {"is_causal", "true", Effect::scores},
    {"clip_qkv", "", Effect::scores},
    {"qk_layernorm", "false", Effect::scores},
    {"use_qk_norm", "false", Effect::scores},
    {"qk_norm", "false", Effect::scores},
    {"rope_theta", "", Effect::scores},
    {"rope_scaling", "", Effect::scores},
    {"rope_parameters", "", Effect::scores},
    {"rope_local_base_freq", "", Effect::scores},
    {"rope_ratio", "1", Effect::scores},
    {"rope_interleaved", "false", Effect::scores},
    {"rope*", "", Effect::scores},
    {"rotary_scaling_factor", "1", Effect::scores},
    {"rotary_pct", "1", Effect::scores},
    {"rotary*", "", Effect::scores},
    {"partial_rotary_factor", "", Effect::scores},
    {"no_rope_layer*", "", Effect::scores},
    {"use_mrope", "false", Effect::scores},
    {"attention_sink*", "false", Effect::scores},
    {"attn_temperature_tuning", "false", Effect::scores},
    {"logit_scale", "1", Effect::logits},
    {"logits_scaling", "1", Effect::logits},
    {"output_multiplier*", "1", Effect::logits},
    {"lm_head_multiplier", "1", Effect::logits},
    {"final_logit_softcapping", "", Effect::logits},
    {"scale_decoder_outputs", "", Effect::logits},
    {"logits_soft_cap", "", Effect::logits},
    {"_remove_final_layer_norm", "false", Effect::logits},
    {"layer_norm_elementwise_affine", "true", Effect::everything},
    {"embedding_multiplier", "1", Effect::everything},
    {"residual_multiplier", "1", Effect::everything},
    {"use_parallel_residual", "false", Effect::everything},
    {"parallel_residual", "false", Effect::everything},
    {"apply_residual_connection_post_layernorm", "false", Effect::everything},
    {"use_mup", "false", Effect::everything},
    {"auto_map", "", Effect::everything},  // code of its own, whatever its model_type
});

}  // namespace

bool is_inert(std::string_view key) {
  // Position embeddings of RoBERTa's kind begin behind the padding token's number.
  if (key == "pad_token_id") return false;
  return std::any_of(inert_fields.begin(), inert_fields.end(),
                     [&](std::string_view pattern) { return matches(pattern, key); });
}

Effect effect_of(const Config::Field& field, std::span<const std::string_view> harmless) {
  const auto names_it = [&](std::string_view pattern) { return matches(pattern, field.key); };
  if (is_inert(field.key) || std::any_of(harmless.begin(), harmless.end(), names_it) ||
      std::any_of(harmless_fields.begin(), harmless_fields.end(), names_it)) {
    return Effect::none;
  }
  for (const Rule& rule : rules) {
    if (names_it(rule.name)) return field.value == rule.neutral ? Effect::none : rule.effect;
  }
  return Effect::everything;
}

}  // namespace normscope::models
