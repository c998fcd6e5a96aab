#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The layers that run a shared block, and those whose names its copies have.
struct SharedBlocks {
  std::string name;
  std::vector<int> uses;
  std::vector<int> stored;
};

SharedBlocks find_blocks(Builder& b) {
  SharedBlocks blocks;
  blocks.name = b.model_type() == "zamba" || b.has("layers.0.mamba.x_proj_weight") ? "shared_transf."
                                                                                   : "shared_transformer.";
  b.each_part("layers.{}.", [&] {
    if (!b.has("linear.")) return;
    blocks.uses.push_back(b.layer());
    if (b.has(blocks.name)) blocks.stored.push_back(b.layer());
  });
  return blocks;
}

// Maps of low rank whose outputs are added to those of a shared map, one for each use of the block.
void adapters(Builder& b, const std::string& list) {
  b.each_part(list + ".{}.", [&] {
    b.reads("adapter in", "0");
    b.other("1.weight");
  });
}

// Attention reads the stream beside the token embedding, the MLP the output of attention alone.
void shared_block(Builder& b) {
  b.norm_inside("input_layernorm", "attention input", 2 * b.width());
  b.within("self_attn.", [&] {
    b.attention("q_proj", "k_proj", "v_proj");
    for (const char* part : {"q", "k", "v"}) adapters(b, std::string("linear_") + part + "_adapter_list");
  });
  b.norm_of_outputs("pre_ff_layernorm", "mlp input", {.role = "attention out", .map = "self_attn.o_proj"});
  b.within("feed_forward.", [&] {
    if (b.has("gate_up_proj.")) {
      b.reads_parts({"mlp gate", "mlp in"}, "gate_up_proj");
      adapters(b, "gate_up_proj_adapter_list");
    } else {
      const std::uint64_t inner = b.reads("mlp gate", "gate_proj");
      b.reads("mlp in", "up_proj", inner);
    }
    b.other("down_proj.weight");
    b.other("down_proj.bias");
  });
}

void zamba_mixer(Builder& b, const MixerNames& names) {
  b.norm("input_layernorm", "mixer input");
  b.within("mamba.", [&] {
    for (const char* name : {"x_proj_weight", "dt_proj_weight", "dt_proj_bias"}) b.other(name);
    state_space_mixer(b, StateNorms::none, names);
  });
}

// Where a layer runs the block, a map of the block's output is added to what its state space reads, not to
// the stream.
void zamba_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  const bool first = b.model_type() == "zamba";
  b.biases_by(Biased::attention, {});
  b.biases_by(Biased::mixers, {first ? "mamba_proj_bias" : "add_bias_linear"});
  if (first) {
    b.biases_by(Biased::mlps, {});
  } else {
    b.biases_by(Biased::mlps, {"add_bias_linear"});
  }
  b.grouped_queries();
  const SharedBlocks blocks = find_blocks(b);
  HeadCounts& heads = b.heads();
  if (heads.heads != 0) {
    heads.head_dim = b.config().count({"attention_head_dim"}).value_or(2 * b.width() / heads.heads);
  }
  b.scores({.scale = 1.0 / std::sqrt(static_cast<double>(heads.head_dim) / 2.0)});
  // Versions differ in what a long context changes in the rotary base.
  const bool is_long = b.config().flag({"use_long_context"}).value_or(false);
  if (b.config().flag({"use_mem_rope"}).value_or(false)) {
    b.rotary({});
    if (is_long) b.scores_not_modelled("use_long_context: true");
  } else {
    b.ignores({"rope_parameters", "rope_theta", "rope_scaling"});
  }
  if (b.config().flag({"use_shared_attention_adapter"}).value_or(false)) {
    b.scores_not_modelled("use_shared_attention_adapter: true");
  }
  MixerNames names;
  names.norm_groups = b.config().count({"mamba_ngroups"}).value_or(1);
  names.norm_eps = 1e-5;
  b.embedding("token embedding", "embed_tokens");
  std::size_t use = 0;
  b.each_layer("layers.{}.", [&] {
    if (!b.has("linear.") || blocks.stored.empty()) return zamba_mixer(b, names);
    const std::size_t block = use++ % blocks.stored.size();
    const std::size_t times = (blocks.uses.size() - block + blocks.stored.size() - 1) / blocks.stored.size();
    b.applications(static_cast<int>(times));
    b.where("layers." + std::to_string(blocks.stored[block]) + "." + blocks.name, [&] { shared_block(b); });
    b.applications(1);
    b.writes("shared block out", "linear");
    b.within("mamba_decoder.", [&] { zamba_mixer(b, names); });
  });
  b.norm("final_layernorm", "final");
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture zamba = {
    .name = "zamba",
    .title = "Zamba or Zamba 2",
    .model_types = {"zamba", "zamba2"},
    .signature = {"layers.{}.mamba_decoder.mamba.in_proj.", "layers.{}.mamba_decoder.input_layernorm.",
                  "layers.{}.linear.", "final_layernorm."},
    .without = {},
    .describe = zamba_forward,
    .harmless = {"adapter_rank", "add_bias_linear", "attention_hidden_size", "attn_layer_*", "chunk_size",
                 "hidden_mamba_act", "hybrid_layer_ids", "kv_channels", "layers_block_type", "mamba_*",
                 "n_mamba_heads", "num_logits_to_keep", "num_mem_blocks", "num_query_groups", "time_step_*",
                 "use_associative_scan", "use_conv_bias", "use_mamba_kernels", "use_mem_eff_path"},
};

}  // namespace normscope::models::architectures
