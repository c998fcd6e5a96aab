#include <optional>
#include <string>

#include <fmt/format.h>

#include "architecture.hpp"
#include "builder.hpp"
#include "config.hpp"

namespace normscope::models::architectures {

namespace {

// The fields of the section "attn_config" that change scores.
void read_scores(Builder& b, const Config& section) {
  const std::optional<double> clip = section.number({"clip_qkv"});
  // transformers adds biases with slopes up to 8 whatever these fields say, other programs as they say.
  const bool alibi = section.flag({"alibi"}).value_or(true);
  const double most = section.number({"alibi_bias_max"}).value_or(8.0);
  b.scores({.scale = section.number({"softmax_scale"}),
            .clip = clip && *clip != 0.0 ? clip : std::nullopt,
            .most_alibi = alibi ? most : 0.0});
  std::string beyond;
  if (!alibi) add_not_modelled(beyond, "attn_config.alibi: false");
  if (alibi && most != 8.0) add_not_modelled(beyond, fmt::format("attn_config.alibi_bias_max: {}", most));
  for (const char* key : {"qk_ln", "prefix_lm", "rope"}) {
    if (section.flag({key}).value_or(false)) {
      add_not_modelled(beyond, fmt::format("attn_config.{}: true", key));
    }
  }
  if (const auto type = section.text({"attn_type"}); type && *type != "multihead_attention") {
    add_not_modelled(beyond, "attn_config.attn_type: " + *type);
  }
  b.scores_not_modelled(beyond);
}

void mpt_forward(Builder& b) {
  const std::string kind = b.config().text({"norm_type"}).value_or("");
  const bool rms = kind.find("rms") != std::string::npos;
  b.norms({.kind = rms ? NormKind::rms : NormKind::layer,
           .placement = Placement::pre,
           .eps = 1e-5,
           .eps_key = "layer_norm_epsilon"});
  if (const std::optional<Config> section = b.config().inside({"attn_config"})) {
    read_scores(b, *section);
  } else {
    b.scores_not_modelled("the biases of MPT's scores (ALiBi)");
  }
  // The class has no biases, whatever no_bias says.
  for (const Biased of : {Biased::attention, Biased::mlps, Biased::norms}) b.biases_by(of, {});
  b.decoder({.activation = "gelu", .fixed_activation = true, .reads_activation = false});
  b.embedding("token embedding", "wte");
  b.embedding("position embedding", "wpe", Need::optional);
  b.each_layer("blocks.{}.", [&] {
    b.norm("norm_1", "attention input");
    const std::uint64_t attended = b.fused_attention("attn.Wqkv");
    b.writes("attention out", "attn.out_proj", attended);
    b.norm("norm_2", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "ffn.up_proj");
    b.writes("mlp out", "ffn.down_proj", inner);
  });
  b.norm("norm_f", "final");
  b.unembedding({"lm_head"}, true);
  b.biases_by(Biased::unembedding, {});
  if (b.config().model_types().empty() && kind.empty() && !b.has("norm_f.bias")) {
    b.norms_in_doubt(
        "norm_type, which no configuration states: an RMSNorm is possible (state the architecture)");
  }
}

}  // namespace

extern const Architecture mpt = {
    .name = "mpt",
    .title = "MPT",
    .model_types = {"mpt"},
    .signature = {"blocks.{}.attn.Wqkv.", "blocks.{}.norm_1.", "blocks.{}.ffn.up_proj."},
    .without = {},
    .describe = mpt_forward,
    // auto_map: published with code of its own before it was part of transformers
    .harmless = {"auto_map", "learned_pos_emb", "embedding_fraction", "expansion_ratio", "init_device",
                 "init_config", "no_bias", "verbose", "use_pad_tok_in_ffn", "tokenizer_name",
                 "param_init_fn"},
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_mpt",
};

}  // namespace normscope::models::architectures
