#include "config.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include <normscope/models/model.hpp>

#include "architecture.hpp"
#include "builder.hpp"

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
     "_num_labels", "prefix", "unsloth_fixed", "unsloth_version", "model_version", "is_llama_config",
     "_from_model_config", "language", "license", "from_tf", "tokenizer_model_max_length",
     "tokenizer_padding_side", "chat_template", "sentence_transformers",
     "sbert_ce_default_activation_function", "keys_to_ignore_at_inference",
     // training and numerics
     "*dropout*", "*pdrop", "drop_path*", "*layerdrop", "initializer_*", "init_std", "gradient_checkpointing",
     "neftune_noise_alpha", "label_smoothing", "use_cache", "cache_implementation", "torchscript",
     "use_bfloat16", "pretraining_tp", "slow_but_exact", "reorder_and_upcast_attn", "chunk_size_feed_forward",
     "tf_legacy_loss",
     // generation
     "output_attentions", "output_hidden_states", "output_scores", "return_dict*", "use_return_dict",
     "do_sample", "early_stopping", "num_beams", "num_beam_groups", "num_return_sequences",
     "diversity_penalty", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
     "exponential_decay_length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
     "bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "min_length", "max_new_tokens",
     "remove_invalid_values"});

// Fields that language models read in generation alone. Classes of other tasks pool at a token or divide by
// the temperature, and those of encoders and decoders make inputs of the decoder.
constexpr auto fields_of_generation = std::to_array<std::string_view>(
    {"bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_*_token_id", "temperature"});

// Other fields that never affect scores or logits as functions of a norm's output: sizes that are known from
// the tensors, activations and inputs of the stream.
constexpr auto harmless_fields = std::to_array<std::string_view>(
    {"architectures", "model_type", "vision_config", "audio_config", "tie_encoder_decoder", "*_token_index",
     "*_token_id", "*_token_ids", "temperature",
     // sizes
     "vocab_size", "vocab_size_*", "hidden_size", "n_embd", "d_model", "intermediate_size", "n_inner",
     "ffn_dim", "d_ff", "ffn_hidden_size", "num_attention_heads", "n_head", "num_heads", "n_heads", "nhead",
     "num_key_value_heads", "head_dim", "num_hidden_layers", "n_layer", "num_layers", "n_layers", "depth",
     "max_position_embeddings", "n_positions", "n_ctx", "block_size", "max_seq_len", "max_seq_length",
     "max_sequence_length", "model_max_length", "seq_length", "vocab_size_or_config_json_file", "max_length",
     "context_length", "type_vocab_size", "word_embed_proj_dim", "embedding_size", "mlp_ratio", "image_size",
     "patch_size", "num_channels", "encoder_stride", "original_max_position_embeddings", "max_window_layers",
     "tie_word_embeddings",
     // mixtures of experts: which experts write to the stream, and how much
     "num_experts*", "num_local_experts", "n_routed_experts", "n_shared_experts", "moe_*", "router_*",
     "output_router_logits", "norm_topk_prob", "routed_scaling_factor", "scoring_func", "topk_*", "n_group",
     "seq_aux", "aux_loss_alpha", "ep_size", "first_k_dense_replace", "decoder_sparse_step",
     "mlp_only_layers", "shared_expert_intermediate_size", "input_jitter_noise",
     // biases: known from the tensors
     "attention_bias", "mlp_bias", "qkv_bias", "qv_bias", "use_bias", "use_qkv_bias", "enable_bias", "bias",
     // activations and inputs of the stream
     "hidden_act", "hidden_activation", "activation_function", "add_cross_attention", "is_decoder",
     "is_encoder_decoder", "cross_attention_hidden_size", "pooler_*", "summary_*", "classifier_*",
     "directionality", "output_past"});

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
    {"full_attn_mod", "1", Effect::scores},
    {"interpolate_factor", "1", Effect::scores},
    {"lm_head_bias", "false", Effect::logits},
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

/// The name by which a field is known, without the section that it stands in and what it contains.
std::string_view key_of(std::string_view path) {
  for (const std::string_view section :
       {"text_config.", "vision_config.", "audio_config.", "model.encoder."}) {
    if (path.starts_with(section)) path.remove_prefix(section.size());
  }
  return path.substr(0, path.find('.'));
}

struct Contained {
  std::string_view key;
  Described where;
};

/// The fields that a description contains wholly where it reads them. Of others, such as the number of
/// layers, it contains less than they say.
constexpr Contained contained[] = {
    {"hidden_size", Described::norms},
    {"n_embd", Described::norms},
    {"d_model", Described::norms},
    {"num_attention_heads", Described::heads},
    {"n_head", Described::heads},
    {"num_heads", Described::heads},
    {"n_heads", Described::heads},
    {"nhead", Described::heads},
    {"head_dim", Described::heads},
    {"num_key_value_heads", Described::heads},
    {"rope_theta", Described::heads},
    {"rope_scaling", Described::heads},
    {"rope_parameters", Described::heads},
    {"partial_rotary_factor", Described::heads},
    {"rotary_pct", Described::heads},
    {"rotary_dim", Described::heads},
    {"sliding_window", Described::heads},
    {"clip_qkv", Described::heads},
    {"alibi", Described::heads},
    {"attn_logit_softcapping", Described::heads},
    {"query_pre_attn_scalar", Described::heads},
    {"attention_multiplier", Described::heads},
    {"scale_attn_weights", Described::heads},
    {"scale_attn_by_inverse_layer_idx", Described::heads},
    {"tie_word_embeddings", Described::logits},
    {"logit_scale", Described::logits},
    {"logits_scaling", Described::logits},
    {"final_logit_softcapping", Described::logits},
    {"hidden_act", Described::stream},
    {"hidden_activation", Described::stream},
    {"activation_function", Described::stream},
    {"embedding_multiplier", Described::stream},
    {"residual_multiplier", Described::stream},
    {"num_experts_per_tok", Described::stream},
    {"swiglu_alpha", Described::stream},
    {"swiglu_limit", Described::stream},
    {"moe_k", Described::stream},
    {"norm_topk_prob", Described::stream},
    {"routed_scaling_factor", Described::stream},
};

/// Whether the largest number of positions changes nothing but the frequencies that a description lists:
/// every head rotates by listed ones, or there are no heads.
bool contains_positions(const Model& model) {
  return model.is_known() && std::all_of(model.heads.begin(), model.heads.end(), [](const Head& head) {
           return head.rotary && !head.rotary->frequencies.empty();
         });
}

bool acts_on_stream(const std::string& path) {
  const std::string_view key = key_of(path);
  return std::any_of(std::begin(contained), std::end(contained),
                     [&](const Contained& one) { return one.key == key && one.where == Described::stream; });
}

/// Where the descriptions of both models contain what the field says.
Described described(const std::string& path, const Model& old_model, const Model& new_model) {
  const std::string_view key = key_of(path);
  if (key == "max_position_embeddings" && contains_positions(old_model) && contains_positions(new_model)) {
    return Described::heads;
  }
  if (!old_model.fields_read.contains(path) && !new_model.fields_read.contains(path)) {
    return Described::nowhere;
  }
  if (key.ends_with("eps") || key.ends_with("epsilon")) return Described::norms;
  for (const Contained& one : contained) {
    if (one.key != key) continue;
    const bool is_there = one.where == Described::heads ? !old_model.heads.empty() && !new_model.heads.empty()
                          : one.where == Described::logits ? old_model.vocabulary && new_model.vocabulary
                          : one.where == Described::stream ? old_model.decoder && new_model.decoder
                                                           : true;
    return is_there ? one.where : Described::nowhere;
  }
  return Described::nowhere;
}

template <std::size_t count>
bool is_one_of(const std::array<std::string_view, count>& patterns, std::string_view key) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](std::string_view pattern) { return matches(pattern, key); });
}

/// Whether no value of the field changes what a model computes. ESM scales embeddings by what it drops in
/// training.
bool is_inert(std::string_view key) { return key != "token_dropout" && is_one_of(inert_fields, key); }

/// Whether all that the model computes is the next token's logits, so that it reads `fields_of_generation`
/// nowhere.
bool is_language_model(const Model& model) {
  const bool has_stacks = std::any_of(model.heads.begin(), model.heads.end(),
                                      [](const Head& head) { return !head.stack.empty(); });
  return model.decoder || (model.vocabulary && model.vocabulary->unembedding && !has_stacks);
}

}  // namespace

Effect effect_of(const Config::Field& field, std::span<const std::string_view> harmless) {
  const auto names_it = [&](std::string_view pattern) { return matches(pattern, field.key); };
  if (is_inert(field.key) || is_one_of(harmless_fields, field.key) ||
      std::any_of(harmless.begin(), harmless.end(), names_it)) {
    return Effect::none;
  }
  for (const Rule& rule : rules) {
    if (names_it(rule.name)) return field.value == rule.neutral ? Effect::none : rule.effect;
  }
  return Effect::everything;
}

namespace {

/// The common prefix of the names of one attention's tensors: "h.0.attn." of "h.0.attn.c_attn.weight"; empty
/// if the projection has no siblings.
std::string_view attention_of(std::string_view projection) {
  if (projection.ends_with(".weight")) projection.remove_suffix(7);
  const std::size_t dot = projection.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : projection.substr(0, dot + 1);
}

/// Every linear map that the model describes, once for each place that has it.
template <typename Use>
void each_map(Model& model, const Use& use) {
  for (Norm& norm : model.norms) {
    for (Linear& map : norm.readers) use(map);
    for (Linear& map : norm.writers) use(map);
  }
  for (Linear& map : model.stream_readers) use(map);
  for (Head& head : model.heads) {
    for (std::optional<Linear>* map : {&head.between, &head.query, &head.key, &head.value}) {
      if (*map) use(**map);
    }
  }
  if (model.vocabulary && model.vocabulary->unembedding) use(*model.vocabulary->unembedding);
}

}  // namespace

void add_not_modelled(std::string& list, std::string_view what) {
  while (!what.empty()) {
    const std::size_t end = std::min(what.find("; "), what.size());
    const std::string_view entry = what.substr(0, end);
    if (list.find(entry) == std::string::npos) {
      if (!list.empty()) list += "; ";
      list += entry;
    }
    what.remove_prefix(std::min(end + 2, what.size()));
  }
}

void add_not_modelled(Model& model, Effect effect, std::string_view what) {
  const bool everything = effect == Effect::everything;
  if (effect == Effect::scores || everything) {
    for (Head& head : model.heads) add_not_modelled(head.not_modelled, what);
  }
  if (model.vocabulary && (effect == Effect::logits || everything)) {
    add_not_modelled(model.vocabulary->not_modelled, what);
  }
  if (!everything) return;
  add_not_modelled(model.not_modelled, what);
  if (model.decoder) add_not_modelled(model.decoder->not_modelled, what);
  each_map(model, [&](Linear& map) { add_not_modelled(map.not_modelled, what); });
}

// Tensors beside the projections that were not described can affect the scores: learned sinks, relative
// positions, norms of queries and keys.
void Builder::flag_attention_leftovers() {
  for (Head& head : model_.heads) {
    if (!head.query) continue;
    const std::string_view attention = attention_of(head.query->weight.tensor);
    if (!attention.empty()) add_not_modelled(head.not_modelled, beside(attention));
  }
}

// The first tensor with this prefix that no description uses, in words; empty if there is none.
std::string Builder::beside(std::string_view prefix) const {
  for (const files::Tensor& tensor : inventory_.starting_with(prefix)) {
    if (!used(tensor)) return fmt::format("tensor \"{}\"", tensor.name);
  }
  return {};
}

// Names a tensor beside a parameter "q_proj.weight" or "experts.gate_up_proj": adapters
// (q_proj.lora_A.weight), scales of quantized values (q_proj.weight_scale, experts.gate_up_proj_scale),
// parametrizations.
std::string Builder::beside_parameter(const std::string& tensor) const {
  const std::string stem = tensor.substr(0, tensor.ends_with(".weight") ? tensor.size() - 7 : tensor.size());
  for (const char* separator : {".", "_"}) {
    if (*separator == '_' && stem.size() != tensor.size()) continue;
    if (std::string found = beside(stem + separator); !found.empty()) return found;
  }
  return {};
}

// Fills `not_modelled` of everything from what lies beside the tensors that it uses. Whatever is computed
// from a map or norm that is not modelled is not modelled either.
void Builder::flag_tensors_beside() {
  std::map<std::string, std::string> known;
  const auto found = [&](const std::string& tensor) -> const std::string& {
    const auto [place, is_new] = known.try_emplace(tensor);
    if (is_new) place->second = beside_parameter(tensor);
    return place->second;
  };
  each_map(model_, [&](Linear& map) { add_not_modelled(map.not_modelled, found(map.weight.tensor)); });
  for (Norm& norm : model_.norms) {
    if (norm.gain) add_not_modelled(norm.not_modelled, found(norm.gain->tensor));
  }
}

void Builder::gather_not_modelled() {
  std::map<std::string_view, std::string_view> norms;
  for (const Norm& norm : model_.norms) {
    if (!norm.not_modelled.empty()) norms.emplace(norm.name, norm.not_modelled);
  }
  const auto add_norm_of = [&](std::string& list, const std::string& name) {
    if (const auto found = norms.find(name); found != norms.end()) add_not_modelled(list, found->second);
  };
  for (Head& head : model_.heads) {
    for (const std::optional<Linear>* map : {&head.between, &head.query, &head.key}) {
      if (!*map) continue;
      add_not_modelled(head.not_modelled, (*map)->not_modelled);
      if (norms.empty()) continue;
      if (const Norm* const own = own_norm(model_, **map)) add_norm_of(head.not_modelled, own->name);
    }
    add_norm_of(head.not_modelled, head.norm);
    for (const std::string& norm : head.later_norms) add_norm_of(head.not_modelled, norm);
  }
  if (model_.vocabulary) {
    std::string& list = model_.vocabulary->not_modelled;
    if (model_.vocabulary->unembedding) {
      add_not_modelled(list, model_.vocabulary->unembedding->not_modelled);
    }
    add_norm_of(list, model_.vocabulary->final_norm);
  }
  if (!model_.decoder) return;
  // The first thing suffices: an adapter may have tensors in every layer.
  std::string& whole = model_.decoder->not_modelled;
  each_map(model_, [&](const Linear& map) {
    if (whole.empty()) whole = map.not_modelled;
  });
  if (whole.empty() && !norms.empty()) whole = norms.begin()->second;
}

void Builder::flag_norms_in_doubt() {
  if (doubt_.empty()) return;
  for (Norm& norm : model_.norms) norm.kind_is_assumed = true;
  note(doubt_);
  add_not_modelled(model_, Effect::everything, doubt_);
}

// RMSNorm has no bias: a file that stores one is of another family, whatever its names.
void Builder::flag_biased_norms() {
  std::string first;
  for (Norm& norm : model_.norms) {
    if (norm.kind != NormKind::rms || !norm.bias) continue;
    norm.kind = NormKind::layer;
    if (first.empty()) first = norm.bias->tensor;
  }
  if (first.empty()) return;
  note(fmt::format(
      "\"{}\" is the bias of a norm; RMSNorm has none, so norms with one are taken for LayerNorm", first));
  add_not_modelled(model_, Effect::everything, fmt::format("tensor \"{}\"", first));
}

// The first bias of such maps that is not of zeros, which writers of quantized weights store for every map;
// null without one.
const Slice* Builder::first_bias(const std::function<bool(const Linear&)>& of) {
  const Slice* first = nullptr;
  each_map(model_, [&](const Linear& map) {
    if (first == nullptr && map.bias && of(map) && !holds_zeros(map.bias->tensor)) first = &*map.bias;
  });
  return first;
}

// Whether the class leaves out, by this field, a bias of attention or of MLPs that the file stores.
bool Builder::leaves_out_bias(const Config::Field& field) {
  // TransformerLens has a bias of every map.
  if (field.value != "false" || has_lens_names(model_)) return false;
  const auto is = [&](std::initializer_list<std::string_view> keys) {
    return std::find(keys.begin(), keys.end(), field.key) != keys.end();
  };
  const bool of_all = is({"use_bias", "enable_bias", "bias"});
  const bool of_attention = of_all || is({"attention_bias", "qkv_bias", "qv_bias", "use_qkv_bias"});
  const bool of_mlps = of_all || is({"mlp_bias"});
  if (!of_attention && !of_mlps) return false;
  return first_bias([&](const Linear& map) {
           const bool attends = map.role == "query" || map.role == "key" || map.role == "value";
           return (of_attention && attends) || (of_mlps && map.role.starts_with("mlp"));
         }) != nullptr;
}

const Slice* Builder::first_bias(Biased of) {
  if (of == Biased::norms) {
    for (const Norm& norm : model_.norms) {
      if (norm.bias && !holds_zeros(norm.bias->tensor)) return &*norm.bias;
    }
    return nullptr;
  }
  if (of == Biased::norms_of_heads) {
    for (const Norm& norm : model_.norms) {
      if (norm.gain && (norm.role == "query norm" || norm.role == "key norm")) return &*norm.gain;
    }
    return nullptr;
  }
  return first_bias([&](const Linear& map) {
    const auto begins = [&](std::initializer_list<std::string_view> words) {
      return std::any_of(words.begin(), words.end(),
                         [&](std::string_view word) { return map.role.starts_with(word); });
    };
    switch (of) {
      case Biased::attention: return begins({"query", "key", "value", "attention", "cross-attention"});
      case Biased::queries: return begins({"query", "cross-attention query"});
      case Biased::keys: return begins({"key", "cross-attention key"});
      case Biased::values: return begins({"value", "cross-attention value"});
      case Biased::attention_output: return begins({"attention out", "cross-attention out"});
      case Biased::mlps: return begins({"mlp", "router", "shared expert"});
      case Biased::unembedding: return begins({"unembedding"});
      default: return begins({"mixer", "state parameters"});
    }
  });
}

void Builder::flag_biases() {
  // TransformerLens has a bias of every map and norm.
  if (model_type().empty() || has_lens_names(model_)) return;
  for (const auto& [of, fields] : biases_by_) {
    const bool has_them = std::any_of(fields.begin(), fields.end(), [&](const char* field) {
      return config_.flag({field}).value_or(false);
    });
    const Slice* const bias = has_them ? nullptr : first_bias(of);
    if (bias == nullptr) continue;
    add_not_modelled(model_, Effect::everything,
                     fields.empty() ? fmt::format("tensor \"{}\"", bias->tensor)
                     : config_.has({fields.front()})
                         ? fmt::format("{}: false, beside {}", fields.front(),
                                       of == Biased::norms_of_heads ? "norms of heads" : "biases")
                         : fmt::format("tensor \"{}\" without {}", bias->tensor, fields.front()));
  }
}

void Builder::flag_fields(std::span<const std::string_view> harmless) {
  earlier_towers_.push_back(config_);
  for (const Config& config : earlier_towers_) {
    for (const Config::Field& field : config.unread()) {
      const bool contradicts = leaves_out_bias(field);
      add_not_modelled(model_, contradicts ? Effect::everything : effect_of(field, harmless),
                       fmt::format("{}: {}{}", field.key, field.value, contradicts ? ", beside biases" : ""));
    }
  }
}

std::string not_normalizing(const Norm& norm) {
  return norm.effect() == NormEffect::off
             ? fmt::format("not modelled: {} has eps {:g}, so normalization is off", norm.name, norm.eps)
             : fmt::format("not modelled: {} is {}, an elementwise kind", norm.name, facts(norm.kind).title);
}

namespace {

/// Whether llama.cpp has no name of its own for a model_type (as JSON) of the family that describes a GGUF
/// file, so that another name there changes nothing.
bool has_no_name_in_llama_cpp(const std::string& type, const Model& gguf) {
  for (const Architecture* const row : all_architectures()) {
    if (row->name != gguf.architecture) continue;
    return std::none_of(row->model_types.begin(), row->model_types.end(),
                        [&](std::string_view name) { return type == fmt::format("\"{}\"", name); });
  }
  return false;
}

}  // namespace

bool has_configuration(const files::Checkpoint& checkpoint) { return !Config(checkpoint).fields().empty(); }

std::vector<ChangedField> changed_fields(const files::Checkpoint& old_file, const Model& old_model,
                                         const files::Checkpoint& new_file, const Model& new_model) {
  const std::map<std::string, std::string> before = Config(old_file).fields();
  const std::map<std::string, std::string> after = Config(new_file).fields();
  const bool of_one_form = (old_file.format() == "gguf") == (new_file.format() == "gguf");
  const bool only_generate = is_language_model(old_model) && is_language_model(new_model);
  std::vector<ChangedField> changes;
  const auto add = [&](const std::string& path, const std::string& a, const std::string& b) {
    const std::string_view key = key_of(path);
    if (a == b || is_inert(key) || (only_generate && is_one_of(fields_of_generation, key))) return;
    // A form states what its format has a name for. What no description read may act on the stream.
    const bool one_states = !of_one_form && (a.empty() || b.empty());
    if (one_states && (!acts_on_stream(path) || old_model.fields_read.contains(path) ||
                       new_model.fields_read.contains(path))) {
      return;
    }
    if (path == "model_type" && !of_one_form && is_same_family(old_model, new_model)) {
      const bool old_is_gguf = old_file.format() == "gguf";
      if (has_no_name_in_llama_cpp(old_is_gguf ? b : a, old_is_gguf ? old_model : new_model)) return;
    }
    changes.push_back({path, a, b, described(path, old_model, new_model)});
  };
  const auto value = [](const std::map<std::string, std::string>& fields, const std::string& path) {
    const auto found = fields.find(path);
    return found == fields.end() ? std::string() : found->second;
  };
  for (const auto& [path, text] : before) add(path, text, value(after, path));
  for (const auto& [path, text] : after) {
    if (!before.contains(path)) add(path, "", text);
  }
  std::sort(changes.begin(), changes.end(),
            [](const ChangedField& a, const ChangedField& b) { return a.field < b.field; });
  return changes;
}

}  // namespace normscope::models
