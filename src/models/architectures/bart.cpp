#include <optional>
#include <string>

#include <fmt/format.h>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// BART and Marian normalize after the addition, the others before the branch, whatever "normalize_before"
// says.
bool norms_before(const Builder& b) {
  const std::string type = b.model_type();
  for (const char* known : {"mbart", "pegasus", "m2m_100", "blenderbot"}) {
    if (type == known) return true;
  }
  for (const char* known : {"bart", "marian", "blenderbot-small", "plbart"}) {
    if (type == known) return false;
  }
  return b.config().flag({"normalize_before"}).value_or(b.has("decoder.layer_norm."));
}

// BlenderbotSmall's decoder adds positions behind the norm, so its first attention reads no norm.
void embeddings(Builder& b, bool adds_behind) {
  const auto positions = [&] {  // not stored if computed
    b.embedding("position embedding", "embed_positions", Need::optional);
  };
  if (!adds_behind) positions();
  if (b.has("layernorm_embedding.")) b.norm("layernorm_embedding", "embedding", Placement::post);
  if (!adds_behind) return;
  positions();
  b.reads_the_stream();
}

void bart_forward(Builder& b) {
  const std::string type = b.model_type();
  const bool is_small = type == "blenderbot-small";
  if (type.empty() && b.has("decoder.layernorm_embedding.")) {
    b.note(
        "without a configuration this could be BlenderbotSmall, whose decoder adds positions behind "
        "layernorm_embedding");
  }
  const bool before = norms_before(b);
  b.norms({.kind = NormKind::layer,
           .placement = before ? Placement::pre : Placement::post,
           .eps = 1e-5,
           .eps_key = ""});
  const std::optional<bool> stated = b.config().flag({"normalize_before"});
  if (stated && *stated != before) {
    b.scores_not_modelled(fmt::format("normalize_before: {}", *stated));
  }
  const auto stack = [&](const std::string& name) {
    b.new_stream();
    b.stack(name);
    if (b.has("shared.")) {
      b.embedding("token embedding", "shared");
      b.other(name + ".embed_tokens.weight");  // the same table again
    } else {
      b.embedding("token embedding", name + ".embed_tokens");
    }
    b.within(name + ".", [&] {
      embeddings(b, name == "decoder" && (is_small || type.empty()) && b.has("layernorm_embedding."));
      if (name == "encoder") {
        bart_encoder_layers(b, {.before = before});
      } else {
        bart_decoder_layers(b, {.before = before});
      }
      if (b.has("layer_norm.")) b.norm("layer_norm", "final");
    });
  };
  stack("encoder");
  b.remember_for_cross_attention();
  stack("decoder");
  b.unembedding({"lm_head"}, true, true, "final_logits_bias");
}

}  // namespace

extern const Architecture bart = {
    .name = "bart",
    .title = "BART, mBART, Pegasus or Marian",
    .model_types = {"bart", "mbart", "pegasus", "marian", "m2m_100", "blenderbot", "blenderbot-small",
                    "plbart"},
    .signature = {"encoder.layers.{}.self_attn_layer_norm.", "decoder.layers.{}.encoder_attn_layer_norm."},
    .without = {"encoder.conv1."},
    .describe = bart_forward,
    .harmless = {"encoder_*", "decoder_*", "scale_embedding", "add_final_layer_norm", "add_bias_logits",
                 "normalize_embedding", "static_position_embeddings", "extra_pos_embeddings",
                 "share_encoder_decoder_embeddings", "force_bos_token_to_be_generated", "save_step",
                 "replacing_rate", "layernorm_variant", "do_blenderbot_90_layernorm"},
};

}  // namespace normscope::models::architectures
